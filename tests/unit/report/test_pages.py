"""Pages: self-contained, well-formed, true to the figures, and sound at the edges."""

from __future__ import annotations

import random
import re
from html.parser import HTMLParser
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.report.still import still

from windrow.errors import UserError
from windrow.model import File, Log, Repairs, Task, Workflow, format_duration
from windrow.model.size import format_size
from windrow.report.simulation import mean_waits, simulation_page, width_classes
from windrow.report.workflow import untangled, workflow_page
from windrow.shape import level_of_parallelism, shape, token_parallelism
from windrow.sim.settings import POLICIES
from windrow.sim.simulation import Simulation

_VOID = {"meta", "br"}


class Outline(HTMLParser):
    """Checks that elements are closed in order, and collects visible text, tables and
    attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.extend(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append(data.strip())


def pictures(page: str) -> list[ElementTree.Element]:
    """Every SVG of a page, parsed as XML, which is stricter than HTML; small keys of legends left
    out."""
    found = [
        ElementTree.fromstring(svg) for svg in re.findall(r"<svg .*?</svg>", page, flags=re.DOTALL)
    ]
    return [svg for svg in found if svg.get("class") != "key"]


def assert_self_contained(page: str) -> None:
    page = still(page)
    outline = Outline(page)
    assert not {"script", "link", "img", "iframe"} & set(outline.tags)
    links = [value or "" for name, value in outline.attributes if name == "href"]
    assert all(link.startswith("#task=") for link in links)
    assert not {"src", "xlink:href"} & {name for name, _ in outline.attributes}
    assert "url(" not in page
    assert "@import" not in page
    assert "http" not in page


def assert_inside(svg: ElementTree.Element) -> None:
    """Nothing is drawn outside of the picture, and no coordinate is NaN."""
    _, _, width, height = (float(value) for value in svg.attrib["viewBox"].split())
    for path in svg.iter("path"):
        assert "nan" not in path.attrib["d"]
    for mark in [*svg.iter("circle"), *svg.iter("rect"), *svg.iter("text")]:
        x, y = mark.get("cx") or mark.get("x"), mark.get("cy") or mark.get("y")
        assert x is not None
        assert y is not None
        assert -10 <= float(x) <= width
        assert -10 <= float(y) <= height


def served_in_turn(
    label: str, jobs: int = 40, nodes: int = 8, name: str = "made-up", gap_s: int = 300
) -> Simulation:
    """One job at a time, each after the one before: a schedule that needs no scheduler."""
    submit = np.arange(jobs) * gap_s
    run = 100 + (np.arange(jobs) * 37) % 500
    start = submit.copy()
    for i in range(1, jobs):
        start[i] = max(submit[i], start[i - 1] + run[i - 1])
    width = 1 + np.arange(jobs) % nodes
    log = Log(
        name,
        nodes,
        np.arange(jobs) + 1,
        submit,
        width,
        run + 60,
        run,
        np.zeros(jobs, dtype=np.int64),
        Repairs(0, 2, 0, 0, 3, 0),
    )
    return Simulation(label, log, nodes, start, 0.25, {"policy": label, "requests": "actual"})


def test_the_page_needs_nothing_and_shows_four_pictures() -> None:
    page = simulation_page([served_in_turn("fcfs"), served_in_turn("easy", gap_s=400)])
    assert_self_contained(page)
    assert len(pictures(page)) == 4
    for svg in pictures(page):
        assert_inside(svg)
    assert page.count("<figcaption>") == 4


def test_the_table_holds_the_figures_of_each_policy() -> None:
    one, other = served_in_turn("fcfs"), served_in_turn("easy", gap_s=400)
    texts = Outline(simulation_page([one, other])).texts
    for simulation in (one, other):
        summary = simulation.summary()
        assert simulation.label in texts
        assert format_duration(summary.mean_wait_s) in texts
        assert f"{summary.mean_bounded_slowdown:,.2f}" in texts
        assert f"{100 * summary.utilization:.2f} %" in texts
    assert "dropped: 2 jobs had no processors" in texts


def test_the_best_of_a_row_stands_out() -> None:
    slow, quick = served_in_turn("slow", gap_s=200), served_in_turn("quick", gap_s=500)
    page = simulation_page([slow, quick])
    row = re.search(r"<tr><td>mean wait</td>(.*?)</tr>", page)
    assert row
    cells = re.findall(r"<td( class=\"best\")?>([^<]*)", row[1])
    assert [bool(best) for best, _ in cells] == [False, True]
    assert [text for _, text in cells] == [
        format_duration(s.summary().mean_wait_s) for s in (slow, quick)
    ]


def test_names_are_text_not_markup() -> None:
    page = simulation_page([served_in_turn("<b>easy</b> & co", name='log <script>"x"')])
    assert_self_contained(page)
    assert "<script>" not in page
    assert "<b>easy" not in page


def test_a_window_is_told_and_veiled() -> None:
    simulation = served_in_turn("fcfs")
    page = simulation_page([simulation], from_s=3000, to_s=6000)
    assert page.count('class="veil"') == 4, "before and after, in both pictures over time"
    assert "10 jobs on 8 nodes" in page
    assert 'class="veil"' not in simulation_page([simulation])


def test_the_policies_shown_are_explained_and_no_others() -> None:
    page = simulation_page([served_in_turn("easy"), served_in_turn("depth:3")])
    assert f"easy: {POLICIES['easy']}" in page
    assert f"depth:3: {POLICIES['depth:K']}" in page
    assert POLICIES["fcfs"] not in page


@pytest.mark.parametrize("jobs", [1, 2, 5000])
def test_logs_of_any_size_can_be_drawn(jobs: int) -> None:
    page = simulation_page([served_in_turn("fcfs", jobs=jobs)])
    for svg in pictures(page):
        assert_inside(svg)
    assert len(page) < 200_000, "long logs are thinned"


def test_a_log_where_nobody_waits_can_be_drawn() -> None:
    one, fifty = np.ones(3, dtype=np.int64), np.full(3, 50)
    log = Log("idle", 4, np.arange(3), np.arange(3), one, fifty, fifty, one)
    page = simulation_page([Simulation("easy", log, 4, log.submit_s)])
    assert "100 % under easy" in page
    for svg in pictures(page):
        assert_inside(svg)


def test_ten_policies_have_colours_and_rows() -> None:
    simulations = [served_in_turn(f"depth:{k}") for k in range(10)]
    for svg in pictures(simulation_page(simulations)):
        assert_inside(svg)


def test_no_simulation_no_page() -> None:
    with pytest.raises(UserError, match="at least one"):
        simulation_page([])


@given(st.integers(1, 5000))
def test_width_classes_hold_every_width_once(widest: int) -> None:
    classes = width_classes(widest)
    covered = [width for begin, end in classes for width in range(begin, end + 1)]
    assert covered == list(range(1, widest + 1))


def test_mean_waits_by_class_are_those_of_its_jobs() -> None:
    simulation = served_in_turn("fcfs", jobs=50, nodes=11)
    classes = [*width_classes(11), (12, 16)]
    found = mean_waits(simulation, classes, (1000, 9000))
    for (begin, end), mean in zip(classes, found, strict=True):
        rows = zip(simulation.log, simulation.wait_s, strict=True)
        waits = [w for job, w in rows if begin <= job.nodes <= end and 1000 <= job.submit_s < 9000]
        assert np.isnan(mean) if not waits else mean == pytest.approx(sum(waits) / len(waits))


def page_of(workflow: Workflow, *, exact: bool = True) -> str:
    known = level_of_parallelism(workflow) if exact else None
    return workflow_page(workflow, shape(workflow), token=token_parallelism(workflow), exact=known)


def fork_join(width: int, kind: str = "work") -> Workflow:
    middle = [Task(f"m{i}", 10 + i, kind, parents=("in",), inputs=("big",)) for i in range(width)]
    last = Task("out", 1, "join", parents=tuple(t.id for t in middle))
    return Workflow.from_tasks(
        "fork-join", [Task("in", 2, "fork"), *middle, last], [File("big", 2_500_000)]
    )


def chain(length: int) -> Workflow:
    tasks = [Task(f"t{i}", 3600, parents=(f"t{i - 1}",) if i else ()) for i in range(length)]
    return Workflow.from_tasks("chain", tasks)


def test_every_task_of_a_small_workflow_is_drawn_with_its_name() -> None:
    workflow = fork_join(12)
    page = page_of(workflow)
    assert_self_contained(page)
    profile, drawing = pictures(page)
    assert_inside(profile)
    assert_inside(drawing)
    dots = list(drawing.iter("circle"))
    hints = [title.text or "" for dot in dots for title in dot.iter("title")]
    assert sorted(hint.split()[0] for hint in hints) == sorted(workflow.ids)
    rows = {dot.attrib["cy"] for dot in dots}
    assert len(rows) == 3
    assert "12 tasks can run at once at most (by tokens, a lower bound: 12)" in page
    assert "2.5 MB in all" in page


def test_a_large_workflow_gets_a_profile_only() -> None:
    page = page_of(fork_join(2000))
    assert_self_contained(page)
    assert len(pictures(page)) == 1
    assert "too many tasks to draw" in page


def test_many_levels_become_lines() -> None:
    page = page_of(chain(2500))
    (profile,) = pictures(page)
    assert_inside(profile)
    assert not list(profile.iter("rect"))
    assert len(page) < 100_000


def test_what_was_not_computed_is_said() -> None:
    assert "not computed (by tokens" in page_of(fork_join(3), exact=False)


def test_kinds_are_text_not_markup() -> None:
    page = page_of(fork_join(2, kind="<script>&"))
    assert_self_contained(page)
    assert "<script>&" in Outline(page).texts


def test_more_kinds_than_colours() -> None:
    tasks = [Task(f"t{i}", 1, f"kind{i}") for i in range(40)]
    page = page_of(Workflow.from_tasks("many", tasks))
    assert "others" in Outline(page).texts
    assert "And 10 more kinds." in page


def crossings(workflow: Workflow, rows: list[list[int]]) -> int:
    place = {v: i for row in rows for i, v in enumerate(row)}
    count = 0
    for upper in rows[:-1]:
        edges = [(place[v], place[int(c)]) for v in upper for c in workflow.children.of(v)]
        count += sum((a - c) * (b - d) < 0 for (a, b), (c, d) in combinations(edges, 2))
    return count


def test_parallel_chains_given_crosswise_are_untangled() -> None:
    top = [Task(f"a{i}", 1) for i in range(6)]
    bottom = [Task(f"b{i}", 1, parents=(f"a{(i * 5 + 2) % 6}",)) for i in range(6)]
    workflow = Workflow.from_tasks("crossed", [*top, *bottom])
    given_order = [list(range(6)), list(range(6, 12))]
    assert crossings(workflow, given_order) > 0
    assert crossings(workflow, untangled(workflow)) == 0


@given(st.integers(1, 20), st.randoms(use_true_random=False))
def test_untangling_keeps_every_task_on_its_level(n: int, chance: random.Random) -> None:
    tasks = [
        Task(f"t{v}", 1, parents=tuple(f"t{p}" for p in range(v) if chance.random() < 0.2))
        for v in range(n)
    ]
    workflow = Workflow.from_tasks("any", tasks)
    rows = untangled(workflow)
    assert sorted(v for row in rows for v in row) == list(range(n))
    assert all(workflow.levels[v] == level for level, row in enumerate(rows) for v in row)


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (2_500_000, "2.5 MB"),
        (999_999, "1 MB"),
        (38e9, "38 GB"),
    ],
)
def test_sizes_in_words(size: float, words: str) -> None:
    assert format_size(size) == words
