"""Plans beside facts, candidates as bars, box plots, graphs of kinds, commands as templates."""

from __future__ import annotations

import random
import re
from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.report import told_runs as run

from windrow.model import Task, Workflow
from windrow.report.run.about import next_commands
from windrow.report.run.candidates import why
from windrow.report.run.columns import columns_of, templates
from windrow.report.run.kinds import kind_edges, longest_chain
from windrow.report.run.planned import miss, planned, planned_jobs
from windrow.story import events as e
from windrow.story.figures import kind_times
from windrow.story.journal import PredictedStart, Record
from windrow.strategies import Decision, JobPlan
from windrow.strategies.base import Candidate


def cells(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html, re.DOTALL)
    return [re.findall(r"<td>([^<]*)</td>", row) for row in rows if "<td>" in row]


def test_what_was_expected_of_a_job_stands_beside_what_came() -> None:
    records = [*run.one_job(1), run.task_started(1016, 0, 0), run.finished(1096, 0, 1016)]
    records.append(run.ended(1098, 0))
    said = [PredictedStart(0, "twin", 1005, 1, 120, 1065, 1), PredictedStart(0, "x", 1, 1, 1, 9, 0)]
    told = run.told(run.independent(1), records, until_s=1098, state="complete", predictions=said)
    (job,) = planned_jobs(told)
    assert (job.wait_s, job.waited_s, job.run_s, job.ran_s) == (60, 10, 60, 83)
    assert cells(planned(told)) == [
        ["wait", "60 s", "10 s", "−50 s (−83 %)"],
        ["run", "60 s", "83 s", "+23 s (+38 %)"],
    ]
    assert miss(60, 60.3) == "as planned"


def test_a_promise_of_the_whole_is_held_against_the_end() -> None:
    chosen = Candidate("all in one", 2, 10, 90, 0, 100)
    others = (Candidate("two jobs <b>", 2, 0, 30, 0, 140), Candidate("best", 4, 5, 80, 0, 85))
    decision = Decision((JobPlan((0,), 2, 90, 120),), (chosen, *others), "it is", is_played=True)
    records = [
        Record(e.RunBegan(1000)),
        Record(e.JobsPlanned(1000, decision), {"forecast": "twin"}),
        run.submitted(1001, 0),
    ]
    told = run.told(run.independent(1), records, until_s=1125, state="complete")
    assert cells(planned(told))[0] == ["whole run", "100 s", "2.1 min", "+25 s (+25 %)"]
    drawn = why(told)
    names = re.findall(r'class="end[^"]*">([^<]*)<', drawn)
    assert names == ["all in one", "best", "two jobs &lt;b&gt;"], "chosen first, then by their ends"
    assert "85 s (-15 %)" in drawn
    assert "2.3 min (+40 %)" in drawn


def test_a_run_without_decisions_has_neither() -> None:
    told = run.told(run.independent(1), [Record(e.RunBegan(1000))], until_s=1001)
    assert planned(told) == ""
    assert why(told) == ""


@given(st.lists(st.floats(0.5, 1e5), min_size=1, max_size=30))
def test_quartiles_are_those_of_statistics(times: list[float]) -> None:
    """Against numpy's definition, which is another program."""
    import numpy as np

    records = run.one_job(len(times))
    for task, took in enumerate(times):
        records += [run.task_started(1016, 0, task), run.finished(1016 + took, task, 1016)]
    (kind,) = kind_times(run.told(run.independent(len(times)), records, until_s=1e6).story)
    ran = [1016 + took - 1016 for took in times]
    assert np.allclose(kind.quartiles, np.percentile(ran, [0, 25, 50, 75, 100]), rtol=1e-6)
    assert kind.node_s == sum(ran) or abs(kind.node_s - sum(ran)) < 1e-6 * sum(ran)


@given(st.integers(0, 10_000))
def test_the_longest_chain_is_the_longest_of_all_paths(seed: int) -> None:
    draw = random.Random(seed)
    count = draw.randint(1, 7)
    tasks = [
        Task(
            f"t{i}",
            draw.randint(1, 9),
            parents=tuple(f"t{p}" for p in range(i) if draw.random() < 0.4),
        )
        for i in range(count)
    ]
    workflow = Workflow.from_tasks("w", tasks)

    def paths(task: int) -> list[list[int]]:
        ends = workflow.children.of(task).tolist()
        return [[task, *rest] for child in ends for rest in paths(child)] or [[task]]

    best = max(
        sum(tasks[task].runtime_s for task in path) for i in range(count) for path in paths(i)
    )
    chain, length_s = longest_chain(run.told(workflow, [], until_s=0))
    assert length_s == best == sum(tasks[task].runtime_s for task in chain)
    for before, after in pairwise(chain):
        assert before in workflow.parents.of(after).tolist()


def test_edges_between_kinds_are_counted() -> None:
    tasks = [Task("a", 1.0, kind="x"), Task("b", 1.0, kind="y", parents=("a",))]
    tasks += [Task("c", 1.0, kind="y", parents=("a", "b"))]
    assert kind_edges(Workflow.from_tasks("w", tasks)) == {("x", "y"): 2, ("y", "y"): 1}


@given(st.lists(st.tuples(st.text(" ab\n'", max_size=12), st.sampled_from("xy")), max_size=30))
def test_templates_give_the_commands_back(given_commands: list[tuple[str, str]]) -> None:
    commands = [command for command, _ in given_commands]
    packed = templates(commands, [kind for _, kind in given_commands])
    found = []
    for of, filled in zip(packed["of"], packed["filled"], strict=True):
        gaps = iter(filled)
        template = packed["templates"][of]
        found.append("".join(next(gaps) if word is None else word for word in template))
    assert found == commands


def test_what_to_type_next_names_run_and_task_as_a_shell_takes_them() -> None:
    workflow = Workflow.from_tasks("w", [Task("a b", 1.0)])
    records = [*run.one_job(1), run.task_started(1016, 0, 0), run.failed(1018, 0, 1016)]
    commands = [
        line for line, _ in next_commands(run.told(workflow, records, until_s=1018, state="failed"))
    ]
    assert commands == ["windrow resume toy-1", "windrow logs 'a b' --run toy-1"]


def test_starts_are_written_as_the_time_since_the_one_before() -> None:
    records = run.one_job(3)
    for task, at_s in enumerate((1016, 1016, 1030)):
        records += [run.task_started(at_s, 0, task), run.finished(at_s + 5, task, at_s)]
    told = run.told(run.independent(3), records, until_s=1040, state="complete")
    starts = columns_of(told)["attempts"]["start_ms"]
    assert list(accumulate(starts)) == [16_000, 16_000, 30_000]
