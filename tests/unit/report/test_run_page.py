"""The page of a run: whole, private, honest about what it leaves out; for runs of all sizes and
fates."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from tests.unit.report import told_runs as run
from tests.unit.report.still import still

from windrow.model import Step, Task, Workflow
from windrow.report.page import Time, table
from windrow.report.run.about import About
from windrow.report.run.details import MOST_FAILURES
from windrow.report.run.gantt import run_gantt
from windrow.report.run.page import run_page
from windrow.report.run.planned import miss, planned
from windrow.report.run.starts import starts
from windrow.report.workflow import kind_colours
from windrow.story import events as e
from windrow.story.figures import RecordedRun
from windrow.story.journal import PredictedStart, Record
from windrow.strategies import JobPlan


class Balance(HTMLParser):
    """Finds elements that are not closed, and what a page would fetch or execute."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "script" or any(
            name == "src"
            or (name == "href" and not (value or "").startswith("#task="))
            or name.startswith("on")
            for name, value in attrs
        ):
            self.fetched.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag


def checked(told: RecordedRun) -> str:
    """The page, which is well formed and needs nothing else."""
    page = still(run_page(told))
    parser = Balance()
    parser.feed(re.sub(r"<(meta|br)[^>]*>", "", page).replace("<!DOCTYPE html>", ""))
    assert parser.open == []
    assert parser.fetched == []
    return page


def begun() -> Record:
    return Record(e.RunBegan(1000), at_s=1000)


def test_a_run_that_has_only_begun() -> None:
    page = checked(run.told(run.independent(2), [begun()], until_s=1003))
    assert "0 of 2 tasks finished" in page
    assert "No job was planned" in page


def test_a_job_that_never_started() -> None:
    plan = JobPlan((0,), 1, 60, 120)
    records = [begun(), run.planned(1000, plan), run.submitted(1000, 0)]
    waiting = checked(run.told(run.independent(1), records, until_s=1300))
    assert "job 0 waits 5.0 min so far" in waiting
    rejected = [*records[:2], Record(e.JobRejected(1001, 0, "too long for <debug>"))]
    page = checked(run.told(run.independent(1), rejected, until_s=1001, state="failed"))
    assert "too long for &lt;debug&gt;" in page
    assert "<debug>" not in page


@pytest.mark.parametrize(
    ("state", "first"), [("failed", "Failed and lost attempts"), ("complete", "The run over time")]
)
def test_what_went_wrong_comes_first_where_the_run_failed(state: str, first: str) -> None:
    records = [
        *run.one_job(1),
        run.task_started(1016, 0, 0),
        run.failed(1018, 0, 1016, tail="it is me"),
    ]
    page = checked(run.told(run.independent(1), records, until_s=1018, state=state))
    titles = re.findall(r"<h2[^>]*>([^<]*)<", page)
    assert titles[0] == first
    assert titles.count("Failed and lost attempts") == 1


def test_failures_come_with_their_last_words_and_nothing_of_them_is_markup() -> None:
    tasks = [Task('a<b>"', 1.0, kind="</svg><script>"), Task("child", 1.0, parents=('a<b>"',))]
    records = [
        *run.one_job(2),
        run.task_started(1016, 0, 0),
        run.failed(1018, 0, 1016, tail="first\n<script>alert(1)</script>"),
        run.ended(1020, 0),
    ]
    page = checked(
        run.told(Workflow.from_tasks("w&w", tasks), records, until_s=1020, state="failed")
    )
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "exit code 3" in page
    assert "1 task cannot run" in page
    assert "it is small" in page, "the decision's reason"


def test_more_failures_than_shown_are_counted() -> None:
    count = MOST_FAILURES + 7
    records = run.one_job(count)
    for task in range(count):
        records += [run.task_started(1016, 0, task), run.failed(1018, task, 1016)]
    page = checked(run.told(run.independent(count), records, until_s=1020, state="failed"))
    assert page.count("failed for good") == MOST_FAILURES
    assert "And 7 more failed or lost attempts" in page


def packed(count: int, length_s: float) -> list[Record]:
    """Tasks one after the other on one node."""
    records = run.one_job(count)
    for task in range(count):
        at = 1016 + task * length_s
        records += [run.task_started(at, 0, task), run.finished(at + length_s, task, at)]
    return records


def drawn_tasks(picture: str) -> int:
    """How many tasks the bars of a picture stand for, by what they say of themselves."""
    found = re.findall(r'class="(?:bar|area) [^>]*><title>([^<]*)</title>', picture)
    many = [re.match(r"([\d,]+) tasks", words) for words in found]
    return sum(int(m[1].replace(",", "")) if m else 1 for m in many)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 50, 1500])
def test_few_tasks_are_drawn_one_by_one(count: int) -> None:
    told = run.told(run.independent(count), packed(count, 1.0), until_s=1016 + count)
    picture, caption = run_gantt(told, kind_colours(told.story.workflow)[0])
    assert picture.count('class="bar ') == count == drawn_tasks(picture)
    assert "too short" not in caption


@pytest.mark.slow
def test_ten_thousand_tasks_make_a_small_page_that_tells_them_all() -> None:
    told = run.told(run.independent(10_000), packed(10_000, 0.01), until_s=1120, state="complete")
    picture, caption = run_gantt(told, kind_colours(told.story.workflow)[0])
    assert drawn_tasks(picture) == 10_000
    assert picture.count('class="bar ') < 100
    assert "Tasks too short to distinguish" in caption
    assert len(checked(told)) < 200_000


def test_tasks_at_once_on_a_node_do_not_cover_each_other() -> None:
    records = run.one_job(4, nodes=2)
    for task, (begin, end, node) in enumerate([(16, 30, 0), (18, 26, 0), (26, 40, 0), (16, 40, 1)]):
        records += [
            run.task_started(1000 + begin, 0, task, node),
            run.finished(1000 + end, task, 1000 + begin),
        ]
    told = run.told(run.independent(4), records, until_s=1050)
    picture, _ = run_gantt(told, {"work": 0})
    pattern = r'class="bar c0" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"'
    boxes = [tuple(map(float, box)) for box in re.findall(pattern, picture)]
    assert len(boxes) == 4
    for i, (x, y, w, h) in enumerate(boxes):
        for u, v, ww, hh in boxes[:i]:
            assert (
                x + w <= u + 0.11 or u + ww <= x + 0.11 or y + h <= v + 0.01 or v + hh <= y + 0.01
            )


@pytest.mark.slow
def test_many_jobs_are_cut_off_and_counted() -> None:
    plans = [JobPlan((i,), 1, 60, 120) for i in range(2100)]
    records = [begun(), run.planned(1000, *plans)]
    for job in range(2100):
        records += [
            run.submitted(1000 + job, job),
            run.started(1001 + job, job),
            run.ended(1003 + job, job),
        ]
    told = run.told(run.independent(2100), records, until_s=3200)
    page = checked(told)
    assert "Only the first 2,000 of 2,100 jobs are drawn." in page
    assert f"And 2,040 more jobs: windrow status {told.name} --all." in page
    assert len(page) < 1_500_000


def test_predictions_beside_what_happened() -> None:
    plans = [JobPlan((i,), 1, 60, 120) for i in range(3)]
    records = [begun(), run.planned(1000, *plans)]
    for job in range(3):
        records += [run.submitted(1000, job)]
    records += [run.started(1100, 0), run.started(1300, 1)]
    said = [PredictedStart(job, "twin", 1000, 1, 120, 1200, 1) for job in range(3)]
    told = run.told(run.independent(3), records, until_s=1400, predictions=said)
    html = starts(told)
    # 100 s too early and 100 s too late, one pending: too few for figures, and for a plot
    assert "median miss" not in html
    assert "1 prediction of jobs that have not started." in html
    assert "<svg" not in html
    listed = re.findall(r"<tr><td>job \d</td><td>twin</td>(.*?)</tr>", html)
    assert [re.findall(r"<td>([^<]*)</td>", one)[2] for one in listed] == [
        "100 s earlier",
        "100 s later",
    ]


def test_many_predictions_have_figures_and_a_plot() -> None:
    plans = [JobPlan((i,), 1, 60, 120) for i in range(6)]
    records = [begun(), run.planned(1000, *plans)]
    for job in range(6):
        records += [run.submitted(1000, job)]
    records += [run.started(1100 + 50 * job, job) for job in range(5)]
    said = [PredictedStart(job, "twin", 1000, 1, 120, 1200, 1) for job in range(6)]
    html = starts(run.told(run.independent(6), records, until_s=1400, predictions=said))
    row = re.search(r"<tr><td>twin</td>(.*?)</tr>", html)
    assert row is not None
    cells = re.findall(r"<td>([^<]*)</td>", row[1])
    assert cells == ["5", "1", "50 s", "even", "6"]
    assert html.count('class="mark c0" transform') == 5


def test_durations_of_a_column_are_in_one_unit() -> None:
    html = table(["", "ran"], [("a", Time(9000)), ("b", Time(45)), ("c", Time(6000, "+"))])
    assert re.findall(r"<td>([^<]*)</td>", html)[1::2] == ["2.5 h", "&lt; 0.1 h", "+1.7 h"]
    short = table(["", "ran"], [("a", Time(0.25)), ("b", Time(45))])
    assert re.findall(r"<td>([^<]*)</td>", short)[1::2] == ["0.25 s", "45 s"]


def test_a_run_that_did_not_end_is_not_faster_than_planned() -> None:
    """Its job ended early because a task failed."""
    assert miss(60, 24_000).endswith("(400 times)")
    assert miss(60, 90) == "+30 s (+50 %)"
    records = [begun(), run.planned(1000, JobPlan((0, 1), 1, 60, 120))]
    records += [run.submitted(1000, 0), run.started(1000, 0), run.ended(1010, 0)]
    html = planned(run.told(run.independent(2), records, until_s=1010))
    assert "not all tasks done" in html
    assert "%" not in html


def test_a_command_is_shown_as_the_file_has_it() -> None:
    steps = [
        Step(("/bin/bash", "-euo", "pipefail", "-c", "sort < in > 'out'"), "/"),
        Step(("sort", "-o", "a b"), "/"),
        Step(("bash", "-c", "echo $0", "x"), "/"),
    ]
    known = About(steps=steps)
    shown = [known.command(task) for task in range(4)]
    assert shown == ["sort < in > 'out'", "sort -o 'a b'", "bash -c 'echo $0' x", ""]


def test_no_predictions_no_plot() -> None:
    assert "Nothing was predicted" in starts(
        run.told(run.independent(1), run.one_job(1), until_s=1020)
    )


def test_files_that_move_have_a_row_for_each_way() -> None:
    told = run.told(run.independent(4), packed(4, 1.0), until_s=1050)
    told.story.transfers += [
        e.FilesMoved(1009, ("a", "b"), "", "west", 3_000_000, 4.0),
        e.MoveFailed(1011, ("c",), "west", "", "cut"),
        e.FilesMoved(1020, ("c",), "west", "", 1000, 0.5),
    ]
    picture, caption = run_gantt(told, kind_colours(told.story.workflow)[0])
    assert "2 files from home to west: 3 MB in 4 s" in picture
    assert "1 file from west to home" in picture
    assert (">to west</text>" in picture, ">from west</text>" in picture) == (True, True)
    assert "files that move between sites" in caption
