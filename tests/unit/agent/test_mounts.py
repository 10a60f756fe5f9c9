"""Tasks see their volumes, attempts that fail change nothing in them, and a lost one is no fault of
a task."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.agent.jobs import Run, shell

from windrow.agent.data.mounts import can_mount
from windrow.agent.event_file import AttemptLost
from windrow.agent.job_file import read_job
from windrow.model.cause import Cause
from windrow.model.volume import VolumeMount

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not can_mount(), reason="this machine lets users mount nothing: allow user namespaces"
    ),
]


def volume(here: Path, path: str, place: int) -> VolumeMount:
    before = str(here / f"vol.{place - 1}") if place > 1 else ""
    return VolumeMount(path, "work-1", before, str(here / f"vol.{place}"), 1000)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "work" / "db").mkdir(parents=True)
    (tmp_path / "work" / "db" / "x").write_text("genome\n")
    return tmp_path / "work"


def test_volumes_go_from_task_to_task_and_extracts_come_out(run: Run, here: Path) -> None:
    cache = VolumeMount("/nowhere/db", "db", str(here / "db"), "", 1000)
    first = (
        "cat /nowhere/db/x > /nowhere/w/hits; ! touch /nowhere/db/y; test $WINDROW_VOLUME_DB "
        "= /nowhere/db; ls /usr"
    )
    second = (
        "test $WINDROW_ATTEMPT = 2 || { echo half >> /nowhere/w/hits; exit 3; }; sort "
        "/nowhere/w/hits > /nowhere/w/b"
    )
    third = "cat $WINDROW_VOLUME_WORK/b; test ! -e /nowhere"
    made = [str(here / f"vol.{place}") for place in (1, 2, 3)]
    run.run(
        shell(
            0,
            first,
            mounts=(cache, volume(here, "/nowhere/w", 1)),
            outputs=(made[0],),
            children=(1,),
        ),
        shell(
            1,
            second,
            mounts=(volume(here, "/nowhere/w", 2),),
            inputs=(made[0],),
            outputs=(str(here / "best"), made[1]),
            extracts=(("work-1", "b", str(here / "best")),),
            parents=(0,),
            children=(2,),
            retries=1,
        ),
        shell(
            2,
            third,
            mounts=(volume(here, "work", 3),),
            inputs=(made[1],),
            outputs=(made[2],),
            parents=(1,),
        ),
    )
    assert read_job(run.folder.job_file(0)).tasks[0].mounts[0] == cache
    assert [failed.of.why for failed in run.failed()] == ["exit code 3"]
    assert (here / "best").read_text() == "genome\n", "what the failed attempt wrote is not there"
    assert sorted(path.name for path in (here / "vol.3").iterdir()) == ["b", "hits"]
    assert sorted(path.name for path in here.iterdir()) == ["best", "db", "vol.1", "vol.2", "vol.3"]


def test_what_is_not_there_to_extract_fails_the_task_and_a_lost_volume_does_not(
    run: Run, here: Path
) -> None:
    lost = str(here / "vol.2")
    run.run(
        shell(
            0,
            "true",
            mounts=(volume(here, "/nowhere/w", 1),),
            outputs=(str(here / "best"), str(here / "vol.1")),
            extracts=(("work-1", "b", str(here / "best")),),
        ),
        shell(
            1,
            "true",
            mounts=(volume(here, "/nowhere/w", 2),),
            inputs=(str(here / "vol.1"),),
            outputs=(lost,),
        ),
    )
    (failed,) = run.failed()
    assert failed.task == 0
    assert failed.of.tail.endswith("/b is to be extracted, but the command did not create it")
    (gone,) = run.of(AttemptLost)
    assert (gone.task, gone.cause, gone.why) == (
        1,
        Cause.VOLUME,
        f"volume lost: work-1, as kept in {here}/vol.1",
    )
    assert sorted(path.name for path in here.iterdir()) == ["db"]
