"""The pages of a run and of a comparison: self-contained, well-formed, nothing missing, nothing on
top of another."""

from __future__ import annotations

import itertools
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.unit.report.test_pages import Outline, assert_inside, assert_self_contained, pictures

from windrow.app.strategies import STRATEGIES
from windrow.model import Log, NodeShape, Task, Workflow
from windrow.recipes import generate_log, generate_workflow
from windrow.report.comparison import comparison_page, ranked, unit_of, verdict
from windrow.report.run.gantt import _bars, _lanes
from windrow.report.run.page import run_page
from windrow.story.figures import RecordedRun, attempts
from windrow.story.states import AttemptState
from windrow.story.story import TaskAttempt
from windrow.trials.background import Background, run_with_background
from windrow.trials.compare import compare
from windrow.trials.scenario import Scenario

LOG = generate_log("lublin", seed=3, days=6, nodes=32)
WORKFLOW = generate_workflow("montage", tasks=40, work_s=60 * 3600, seed=2)


def run_of(name: str, *, noise: float = 0.0, cores: int = 1) -> tuple[RecordedRun, Background]:
    scenario = Scenario(WORKFLOW, LOG, shape=NodeShape(cores), noise=noise, seed=1, margin=1.0)
    return run_with_background(scenario, STRATEGIES[name], 90_000)


def boxes(svg: ElementTree.Element, css: str) -> list[ElementTree.Element]:
    return [rect for rect in svg.iter("rect") if css in (rect.get("class") or "").split()]


@pytest.mark.parametrize(
    ("name", "cores"), [("glume", 1), ("zhang", 4), ("individual", 1), ("giant", 2)]
)
def test_every_attempt_and_every_job_is_drawn(name: str, cores: int) -> None:
    run, background = run_of(name, noise=0.5, cores=cores)
    page = run_page(run, background, ["a <line> & more"])
    assert_self_contained(page)
    svg = pictures(page)[0]
    assert_inside(svg)
    done = [
        attempt for _, attempt in attempts(run.story) if attempt.outcome is AttemptState.FINISHED
    ]
    lost = [attempt for _, attempt in attempts(run.story) if attempt.outcome is AttemptState.LOST]
    assert len(boxes(svg, "bar")) == len(done) == len(WORKFLOW)
    assert len(boxes(svg, "area")) == len(lost)
    assert len([path for path in svg.iter("path") if "lost" in (path.get("class") or "")]) == len(
        lost
    )
    assert len(boxes(svg, "axis")) == sum(
        job.started_s is not None for job in run.story.jobs.values()
    )
    hints = [title.text or "" for title in svg.iter("title")]
    assert any(f": job {done[0].job}, node {done[0].nodes[0]}, " in hint for hint in hints), (
        "as in status and explain"
    )
    assert ("Crossed out" in page) == bool(lost)
    assert "a <line> & more" in Outline(page).texts


def test_some_run_loses_tasks() -> None:
    """So that the marks above are put to the test at all."""
    run, _ = run_of("zhang", noise=0.5, cores=4)
    assert any(attempt.outcome is AttemptState.LOST for _, attempt in attempts(run.story))


def in_order_of_starts(run: RecordedRun) -> list[TaskAttempt]:
    return [
        a for _, a in sorted(attempts(run.story), key=lambda pair: (pair[1].started_s, pair[0]))
    ]


@pytest.mark.parametrize("name", ["glume", "individual"])
def test_boxes_are_to_scale(name: str) -> None:
    run, background = run_of(name)
    svg = pictures(run_page(run, background))[0]
    span = background.end_s - background.begin_s
    width = 960 - 74 - 20
    for rect, attempt in zip(boxes(svg, "bar"), in_order_of_starts(run), strict=True):
        assert attempt.ended_s is not None
        assert float(rect.attrib["width"]) == pytest.approx(
            (attempt.ended_s - attempt.started_s) / span * width, abs=0.51
        )
        assert float(rect.attrib["x"]) == pytest.approx(
            74 + (attempt.started_s - background.begin_s) / span * width, abs=0.1
        )


def test_rows_are_shared_only_one_after_the_other() -> None:
    run, _ = run_of("individual")
    jobs = run.story.jobs
    lanes = _lanes(run, jobs)
    assert max(lanes.values()) < 16, "no more rows than the cap allows jobs"
    for (i, a), (k, b) in itertools.combinations(jobs.items(), 2):
        apart = (a.ended_s or 0) <= (b.submitted_s or 0) or (b.ended_s or 0) <= (a.submitted_s or 0)
        assert lanes[i] != lanes[k] or apart


@pytest.mark.parametrize("name", ["giant", "zhang"])
def test_tasks_on_a_node_lie_beside_each_other(name: str) -> None:
    run, _ = run_of(name, noise=0.5, cores=4)
    bars, slots = _bars(run, run.story.jobs)
    assert max(slots.values()) > 1
    for a, b in itertools.combinations(bars, 2):
        if (a.job, a.attempt.nodes, a.slot) == (b.job, b.attempt.nodes, b.slot):
            assert a.end_s <= b.begin_s or b.end_s <= a.begin_s


def test_a_run_of_one_task_on_an_empty_cluster() -> None:
    one = np.array([1])
    log = Log("one", 2, one, one - 1, one, one * 5, one * 5, one - 1)
    scenario = Scenario(Workflow.from_tasks("tiny & <small>", [Task("t", 1)]), log)
    run, background = run_with_background(scenario, STRATEGIES["one-job"], 0)
    page = run_page(run, background)
    assert_self_contained(page)
    assert_inside(pictures(page)[0])


@pytest.mark.slow
def test_the_page_of_a_comparison() -> None:
    comparison = compare(WORKFLOW, LOG, times=[40_000, 90_000, 160_000])
    page = comparison_page(comparison, ["on <a> cluster & more"])
    assert_self_contained(page)
    assert len(pictures(page)) == 4
    for svg in pictures(page):
        assert_inside(svg)
    texts = Outline(page).texts
    order = [s["strategy"] for s in ranked(comparison).summaries()]
    assert order[0] == comparison.best()
    table = page[page.index("<table") : page.index("</table>")]
    assert sorted(order, key=table.index) == order, "the best stands first"
    for other in order[1:]:
        behind = comparison.column(other, "makespan_s") - comparison.column(order[0], "makespan_s")
        error = 2 * behind.std(ddof=1) / len(behind) ** 0.5
        unit = unit_of(comparison)
        assert f"{behind.mean() / unit.seconds:+,.1f} ± {unit.write(error)}" in texts
    unit = unit_of(comparison)
    for summary in comparison.summaries():
        assert summary["strategy"] in texts
        assert unit.write(summary["makespan_s_mean"]) in texts
    assert all(sentence in texts for sentence in verdict(comparison))
    assert "on <a> cluster & more" in texts


def test_one_time_and_one_strategy_make_a_page_too() -> None:
    comparison = compare(WORKFLOW, LOG, times=[0], strategies=["giant"])
    page = comparison_page(comparison, [])
    assert_self_contained(page)
    assert len(pictures(page)) == 2
    assert "no other strategy was tried" in verdict(comparison)[0]
