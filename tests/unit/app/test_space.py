"""What a run may take of the space for files, and what is refused before anything runs."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.app import live_runs
from windrow.app.execute import managed, prepare, start_run
from windrow.app.facts import RunRequest
from windrow.app.runs import RunView, facts_of
from windrow.app.space import change_space, smallest_space, submitted
from windrow.errors import InputError, UserError
from windrow.forecast.runtimes import PastRun, RunTimes, output_kind
from windrow.formats import read_runnable
from windrow.model.size import parse_size, size_option
from windrow.pool.events import WorkflowAccepted, WorkflowEnded
from windrow.pool.folder import pool_at
from windrow.pool.journal import PoolJournal
from windrow.storage.demand import SpaceLimit

WORKFLOW = """
tasks:
  - id: make-{n}
    matrix: {n: 1..4}
    command: cp seed {outputs}
    outputs: {"big-{n}": 10MB}
  - id: use-{n}
    matrix: {n: 1..4}
    command: cp {inputs} {outputs}
    inputs: big-{n}
    outputs: {"small-{n}": 1MB}
"""


@pytest.fixture
def order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunRequest:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WINDROW_HISTORY", str(tmp_path / "history"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "w.yaml").write_text(WORKFLOW)
    return RunRequest(tmp_path / "w.yaml", delete_intermediate=True)


def test_what_cannot_fit_is_refused_with_the_smallest_space_that_would_do(
    order: RunRequest,
) -> None:
    prepared = prepare(replace(order, space=14_000_000))
    assert smallest_space(prepared.runnable.workflow) == 14_000_000
    assert prepared.work.space == SpaceLimit(14_000_000, "auto")
    assert prepared.site.cap == 1, "one job at a time"
    with pytest.raises(
        UserError, match="need at least 14 MB at a time, but may take 13 MB; give --space 14MB"
    ):
        prepare(replace(order, space=13_000_000))
    with pytest.raises(UserError, match=r"--delete-intermediate.*then 14 MB will do"):
        prepare(replace(order, space=20_000_000, delete_intermediate=False))


@pytest.mark.parametrize(
    "wish", [{"also": ("local",)}, {"copies": 2}, {"strategy": "glume"}, {"speculate": True}]
)
def test_what_does_not_go_with_a_limit(order: RunRequest, wish: dict[str, object]) -> None:
    with pytest.raises(UserError, match="a limit on space needs"):
        prepare(replace(order, space=10**9, **wish))  # type: ignore[arg-type]


def test_an_order_within_no_limit_is_refused(order: RunRequest) -> None:
    with pytest.raises(UserError, match="add --space, or leave it out"):
        prepare(replace(order, space_order="depth-first"))


def test_runs_in_a_limited_folder_see_each_other(order: RunRequest, tmp_path: Path) -> None:
    (tmp_path / "windrow.toml").write_text('[data]\nlimit = "60MB"\n')
    first = prepare(order)
    assert first.order.space is None, "it cannot take more"
    assert first.order.guarantee == 44_000_000
    paths = start_run(first)
    assert facts_of(paths).request.guarantee == 44_000_000
    with managed(paths):
        assert live_runs.guaranteed(str(tmp_path.resolve())) == [(paths.name, 44_000_000)]
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "w.yaml").write_text(WORKFLOW)
        second = replace(order, workflow=tmp_path / "other" / "w.yaml")
        assert prepare(second).order.space == 16_000_000
        with pytest.raises(UserError, match="other runs have 44 MB: 20 MB is not available"):
            prepare(replace(second, space=20_000_000))
        with pytest.raises(UserError, match="need at least"):
            prepare(replace(second, delete_intermediate=False))
    assert live_runs.guaranteed(str(tmp_path.resolve())) == [], "who crashed has nothing"
    assert prepare(second).order.guarantee == 44_000_000


def test_of_two_runs_that_need_the_same_space_the_second_is_told_to_wait(
    order: RunRequest, tmp_path: Path
) -> None:
    (tmp_path / "windrow.toml").write_text('[data]\nlimit = "60MB"\n')
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "w.yaml").write_text(WORKFLOW)
    both = [prepare(order), prepare(replace(order, workflow=tmp_path / "other" / "w.yaml"))]
    first, second = [start_run(one) for one in both]
    with (
        managed(first),
        pytest.raises(
            UserError, match="wait until that has ended, or give this one less with --space"
        ),
        managed(second),
    ):
        pytest.fail("there is no room for both")


def test_workflows_in_a_pool_have_their_space_until_they_end(
    order: RunRequest, tmp_path: Path
) -> None:
    (tmp_path / "windrow.toml").write_text('[data]\nlimit = "60MB"\n')
    pool, runnable = pool_at("lab"), read_runnable(order.workflow)
    pool.make()
    PoolJournal.create(pool.journal, {"id": "1"}).close()
    assert submitted(pool, runnable) == 1
    place = str(tmp_path.resolve())
    assert live_runs.guaranteed(place) == [("workflow 1 of a pool", 44_000_000)]
    with pytest.raises(
        UserError,
        match="other runs have 44 MB: 44 MB is not available; wait until they end, or run it",
    ):
        submitted(pool, runnable)
    assert not pool.workflow(2).exists()
    assert prepare(order).order.space == 16_000_000, "runs see it, too"
    with closing(PoolJournal.open(pool.journal, writable=True)) as journal:
        journal.append([WorkflowAccepted(1.0, 1, "w", 8), WorkflowEnded(2.0, 1, "complete")], {})
    assert submitted(pool, runnable) == 2


def test_sizes_are_learned_from_earlier_runs(order: RunRequest) -> None:
    order.workflow.write_text(WORKFLOW.replace("10MB", "").replace("1MB", ""))
    first = prepare(replace(order, space=10**9))
    assert len(first.notes) == 1
    assert first.notes[0].startswith(
        "no size is known of 8 files: tasks that make such files run one at a time"
    )
    history = RunTimes()
    for size in (5e6, 9e6, 7e6):
        history.record(
            [
                PastRun("w", output_kind("make", 0), size, 1.0),
                PastRun("w", output_kind("use", 0), 1.0, 1.0),
            ]
        )
    second = prepare(replace(order, space=10**9))
    assert {file.size_bytes for file in second.runnable.workflow.files} == {9_000_000, 1}
    assert second.notes == ()
    tight = prepare(replace(order, space=5 * 10**6))
    assert not any(file.size_bytes for file in tight.runnable.workflow.files), (
        "guesses refuse nothing"
    )
    assert tight.notes[1].startswith("a guess, by sizes in earlier runs: its files need")
    assert not any(file.size_bytes for file in prepare(order).runnable.workflow.files), (
        "without a limit nothing changes"
    )


@pytest.mark.parametrize("text", ['limit = "much"', "limit = 3", 'size = "3GB"'])
def test_a_table_that_makes_no_sense(order: RunRequest, tmp_path: Path, text: str) -> None:
    (tmp_path / "windrow.toml").write_text(f"[data]\n{text}\n")
    with pytest.raises(InputError, match="limit"):
        prepare(order)


def test_another_limit_for_a_run_that_has_stopped(order: RunRequest) -> None:
    paths = start_run(prepare(replace(order, space=20_000_000)))
    told = RunView(paths)
    change_space(told, 14_000_000)
    assert told.facts.request.space == 14_000_000
    with pytest.raises(
        UserError, match="at least 14 MB at a time, but may take 13 MB; give --space 14MB"
    ):
        change_space(told, 13_000_000)
    with managed(paths) as manager:
        assert manager.core.work.space is not None
        assert manager.core.work.space.size == 14_000_000
        with pytest.raises(UserError, match="windrow cancel"):
            change_space(RunView(paths), 15_000_000)
    with pytest.raises(UserError, match="without a limit"):
        change_space(RunView(start_run(prepare(replace(order, space=None)))), 10**9)


@given(st.integers(1, 10**15))
def test_a_size_is_suggested_in_few_digits_and_never_too_small(size: int) -> None:
    assert size <= parse_size(size_option(size)) <= size * 1.01
    assert len(size_option(size)) <= 8
