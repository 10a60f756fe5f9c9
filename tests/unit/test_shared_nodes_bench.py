"""The bench of other ways on shared nodes: what it draws, deals and concludes. Its cells need a
quiet machine, and are run by `make prove`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from bench.shared_load import (
    CORES,
    NODES,
    SITES,
    Job,
    Played,
    as_log,
    compared,
    draw,
    placed_starts,
)
from bench.shared_nodes import Cell, Result, all_cells, chosen, interval, table, verdict
from bench.shared_simulated import PILOTS, kept, played
from bench.shared_simulated_pilots import LIMIT_S, play
from bench.shared_work import LEVELS, WAYS, Place, draw_work, minutes, prepare

from windrow.sim.cluster import Cluster

RESULT = Result(100.0, 0.5, 60, 1, 0.02, 60, is_cut=False, loadavg=0.1, late_s=0.0, commit="x")


@pytest.mark.parametrize("site", SITES)
def test_a_load_offers_nine_tenths_of_the_machine(site: str) -> None:
    load = draw(site, 3, 4000)
    assert load == draw(site, 3, 4000) != draw(site, 4, 4000)
    work = sum(job.blocks * job.run_s for job in load)
    assert work / load[-1].at_s / (NODES * CORES) == pytest.approx(0.9, rel=0.05)
    assert [job.at_s for job in load] == sorted(job.at_s for job in load)
    assert 0 < sum(job.blocks for job in load if job.at_s == 0) <= NODES * CORES
    parts = sum(not job.nodes for job in load) / len(load)
    assert parts == pytest.approx(0.7 if site == "shared" else 0.0, abs=0.03)
    assert all(60 <= job.limit_s <= 240 and job.run_s <= 0.9 * job.limit_s + 0.5 for job in load)


@pytest.mark.parametrize("tasks", LEVELS)
def test_each_task_is_followed_unless_it_is_the_last(tasks: int) -> None:
    work = draw_work(tasks, 2)
    assert len(work.tasks) == tasks
    seen: set[str] = set()
    for task in work.tasks:
        assert seen.issuperset(task.after)
        seen.add(task.name)
        assert 10 <= task.expected_s <= 60
        assert task.takes_s <= 1.15 * task.expected_s + 0.1 < 60 * task.minutes
    followed = {name for task in work.tasks for name in task.after}
    last = {task.name for task in work.levels[-1]}
    assert {task.name for task in work.tasks} - followed == last


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tasks", LEVELS)
def test_a_way_runs_each_task_once(way: str, tasks: int, tmp_path: Path) -> None:
    work = draw_work(tasks, 1)
    prepare(tmp_path)
    python = ("env", "python3", "-P", "-m", "windrow.cli.main")
    argv = WAYS[way](work, Place(tmp_path, "shared", python, tmp_path))
    assert argv[0] == "env"
    text = "\n".join(file.read_text() for file in tmp_path.iterdir() if file.is_file())
    for task in work.tasks:
        named = f"task.sh {task.name} {task.takes_s}"
        spelled = f'"{task.name}": {{', f'"id": "{task.name}"'
        assert text.count(f"{named}\n") + text.count(f"{named}'") == 1 or any(
            text.count(word) == 1 for word in spelled
        )


def test_limits_are_whole_minutes_with_a_fifth_to_spare() -> None:
    assert [minutes(s) for s in (10, 50, 50.1, 100)] == [1, 1, 2, 2]


def test_a_load_played_alone_is_simulated_exactly() -> None:
    """On an empty machine all starts are their submissions; then none of the ways errs."""
    jobs = [Job(float(10 * n), 2, 0, 60, 5) for n in range(9)]
    lines = compared([Played(job, job.at_s, job.at_s, job.at_s + job.run_s) for job in jobs])
    rows = [line for line in lines if line.startswith(("| cores counted", "| node by node"))]
    assert len(rows) == 5
    assert all("| 0.0 | 0.0 | 0.0 |" in row for row in rows)
    whole = Played(Job(0.0, 0, 3, 60, 5), 0.0, 0.0, 5.0)
    assert as_log([whole]).nodes.tolist() == [3 * CORES]


def test_nodes_that_are_looked_at_one_by_one_have_holes() -> None:
    """A core of each node is free: two cores there are, but not for a job on one node."""
    jobs = [Job(0.0, 3, 0, 60, 60)] * NODES + [Job(1.0, 2, 0, 60, 30), Job(2.0, 0, 2, 60, 30)]
    load = [Played(job, job.at_s, job.at_s, job.at_s + job.run_s) for job in jobs]
    for is_fullest in (False, True):
        starts = placed_starts(load, is_fullest=is_fullest)
        assert starts.tolist() == [0.0] * NODES + [60.0, 60.0]
    hole = [*load, Played(Job(3.0, 1, 0, 60, 30), 3.0, 3.0, 33.0)]
    assert placed_starts(hole, is_fullest=True)[-1] == 3.0


def test_an_interval_is_that_of_paired_logarithms() -> None:
    """By hand: ratios 0.5 and 2 have the mean 1, and logarithms ln 2 away from it."""
    middle, least, most = interval([0.5, 2.0])
    assert middle == pytest.approx(1.0)
    assert least * most == pytest.approx(1.0)
    assert most == pytest.approx(2.0**12.706)  # t is 12.706 for one degree of freedom
    assert interval([0.8])[1:] == (0.0, float("inf"))


def test_cells_are_all_different_and_chosen_by_name() -> None:
    cells = all_cells()
    assert len({cell.name for cell in cells}) == len(cells) == 2 * 6 * (5 + 2)
    assert [cell.name for cell in chosen(["shared-60-2-*"])] == [
        f"shared-60-2-{way.replace(' ', '-')}" for way in WAYS
    ]
    assert chosen(["whole-10-7-sbatch-each"]) == [Cell("whole", 10, 7, "sbatch each")]
    assert not chosen(["whole-11-7-windrow"])


def test_the_verdict_is_against_the_best_other_way() -> None:
    slow = replace(RESULT, makespan_s=200.0, core_hours=0.25)
    found = {
        Cell("shared", 60, seed, way): slow if way != "arrays" else replace(slow, makespan_s=150.0)
        for seed in (1, 2)
        for way in WAYS
    }
    found |= {Cell("shared", 60, seed, "windrow"): RESULT for seed in (1, 2)}
    said = " ".join(verdict(found))
    assert "best other way is arrays" in said
    assert "makespan is 0.67 of its, its core-hours 2.00 of its" in said
    assert said.endswith("above 1.05: none.")
    behind = {
        cell: replace(one, makespan_s=190.0) if cell.way == "windrow" else one
        for cell, one in found.items()
    }
    assert "above 1.05: shared, 60 tasks, arrays." in " ".join(verdict(behind))
    row = next(line for line in table(found) if line.startswith("| shared | 60 | arrays"))
    assert "| 150 | 0.250 | 60 |" in row


@pytest.mark.parametrize("tasks", [10, 60])
def test_simulated_pilots_do_all_tasks_by_their_rules(tasks: int) -> None:
    work = draw_work(tasks, 3)
    ended = play(work, Cluster(nodes=NODES, policy="easy"), 1)
    ends: dict[str, float] = {}
    for task in work.tasks:
        ends[task.name] = max((ends[name] for name in task.after), default=0) + task.takes_s
    assert ended.makespan_s >= max(ends.values()) - len(work.levels)
    total_s = sum(task.takes_s for task in work.tasks)
    assert total_s / CORES <= ended.job_s <= ended.jobs * LIMIT_S
    assert ended.jobs >= total_s / (CORES * LIMIT_S)


@pytest.mark.slow
def test_a_simulated_cell_is_played_once(tmp_path: Path) -> None:
    cell = ("whole", 1, PILOTS)
    played([cell], tmp_path, 1)
    file = kept(tmp_path, cell)
    first = file.stat().st_mtime_ns
    played([cell], tmp_path, 1)
    assert file.stat().st_mtime_ns == first
