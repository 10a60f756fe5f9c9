"""A plan that is only shown is the one that would be carried out."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.app.dry_run import dry_run
from windrow.app.execute import managed, prepare, start_run
from windrow.app.facts import RunRequest
from windrow.app.runs import own_root
from windrow.story import events as e

SITES = """\
[sites.far]
queue = "local"
shares_files_with = ["here"]
{far}
[sites.near]
queue = "local"
shares_files_with = ["here"]
{near}
"""
LARGE = """\
tasks:
  - {id: a, command: "echo > a", outputs: {a: {size: 5MB}}, runtime: 5s}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("far", "near", "goes_to"),
    [
        ('room = "1MB"', "speed = 0.5", "near"),  # no room for its file at the faster one
        ("max_node_hours = 0.0001", "speed = 0.5", "near"),
        ("speed = 2", "", "far"),
    ],
)
def test_it_names_the_site_that_the_run_uses(here: Path, far: str, near: str, goes_to: str) -> None:
    (here / "windrow.toml").write_text(SITES.format(far=far, near=near))
    (here / "w.yaml").write_text(LARGE)
    prepared = prepare(RunRequest(here / "w.yaml", on="far", also=("near",)))
    planned = dry_run(prepared)
    assert not (here / ".windrow").exists(), "a plan writes nothing"
    assert [job.site for job in planned.decision.jobs] == [goes_to]
    paths = start_run(prepared, own_root())
    with managed(paths) as manager:
        manager.begin()
        said = [
            record.event.decision
            for _, record in manager.journal.records()
            if isinstance(record.event, e.JobsPlanned)
        ]
        assert [job.site for job in said[0].jobs] == [goes_to]
        assert [job.nodes for job in said[0].jobs] == [job.nodes for job in planned.decision.jobs]
        assert [one.site for one in said[0].candidates if one.site] == [
            one.site for one in planned.decision.candidates if one.site
        ]
        manager.stop()
        while not manager.is_over:
            manager.step()
