"""What stands in a workflow file is data: it reaches programs unchanged and shells never; nothing
strays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.examples import some
from tests.survival import odd
from tests.survival.world import World, braid, local_world

pytestmark = pytest.mark.slow


@pytest.fixture
def odd_world(tmp_path: Path) -> Iterator[World]:
    """A world in a folder with a name of its own kind."""
    (tmp_path / odd.FOLDER).mkdir()
    made = local_world(tmp_path / odd.FOLDER)
    yield made
    made.clean()


@pytest.mark.parametrize("strategy", some("individual", "one-job"))
def test_odd_names_arguments_and_folders(odd_world: World, strategy: str) -> None:
    tasks = odd.write(odd_world)
    code, said = odd_world.run("--strategy", strategy)
    assert code == 0, said
    odd.check(odd_world, tasks)
    for command in ("status", "report", "plan"):
        more = ("workflow.yaml", "--on", "local") if command == "plan" else ()
        code, said = odd_world.windrow(command, *more)
        assert code == 0, said
    code, said = odd_world.windrow("explain", tasks[3]["id"])
    assert code == 0, said
    assert not list(odd_world.folder.parent.rglob("canary*"))


def test_nothing_is_written_where_it_does_not_belong(world: World, tmp_path: Path) -> None:
    """Runs write into their own folder, declared outputs, and the state of queue, live runs and
    history; no more."""
    for name in ("HOME", "TMPDIR"):
        (tmp_path / name).mkdir()
        world.env[name] = str(tmp_path / name)
    world.write(braid())
    before = odd.listing(tmp_path)
    assert world.run()[0] == 0
    world.check_complete()
    made = odd.listing(tmp_path) - before
    ours = {name for name in made if not name.startswith("elsewhere")}
    outputs = {"first", "last", *(f"{way}-{i}" for way in ("up", "down") for i in range(3))}
    assert ours == {"here/ran", *(f"here/{name}.out" for name in outputs)}
    state = {
        name for name in made if name.startswith("elsewhere/") and Path(tmp_path, name).is_file()
    }
    known = tuple(
        f"elsewhere/{name}"
        for name in ("state/windrow/queue", "state/windrow/live/", "history", "data/windrow/")
    )
    assert all(name.startswith(known) for name in state), state


def test_runs_are_private_whatever_the_umask(world: World) -> None:
    world.write(braid())
    world.umask = 0
    assert world.run()[0] == 0
    odd.check_private(world.latest.folder.path)
