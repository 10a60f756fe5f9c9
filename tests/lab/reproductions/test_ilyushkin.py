"""The reproduction of Ilyushkin, Ghit and Epema: what is compared with print, on made-up and on
small real results."""

from __future__ import annotations

import json
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.model import Task, Workflow
from windrow.streams import Progress
from windrow_lab.reproductions.ilyushkin.beyond import Duel
from windrow_lab.reproductions.ilyushkin.page import (
    PRINTED,
    PRINTED_MAXIMAL,
    blocks,
    findings,
    report,
)
from windrow_lab.reproductions.ilyushkin.pictures import (
    RUNTIME_EDGES_S,
    WORK_EDGES_S,
    Parallelism,
    Pictures,
    Scatter,
)
from windrow_lab.reproductions.ilyushkin.plan import POLICIES, Curve, IlyushkinResults, run_part
from windrow_lab.reproductions.ilyushkin.readings import (
    READINGS,
    RULES,
    PoolReading,
    ReadingPolicy,
    pool_saturation,
    sizes_by_distance,
    sizes_lingering,
)
from windrow_lab.reproductions.paper import PaperPlan
from windrow_lab.stream.metrics import SizeFigures, StreamFigures
from windrow_lab.stream.workload import SIZES, WORKLOADS, Workload

_SIZE = SizeFigures("small", 5, 10.0, 20.0, 15.0, 2.0)


def point(policy: str, offered: float) -> StreamFigures:
    sizes = tuple(replace(_SIZE, size=size) for size in SIZES)
    return StreamFigures(
        policy, offered, 9, 1.0, 2.0, 3.0, 1.5, 2.0, 3.0, 4.0, offered, 0.1, 1.0, 4, sizes
    )


def curve(workload: str, policy: str, maximal: float, seed: int = 1) -> Curve:
    steps = [round(0.05 * k, 2) for k in range(1, round(maximal / 0.05) + 2)]
    points = tuple(point(policy, u) for u in steps)
    return Curve(workload, policy, seed, points, tuple(u <= maximal for u in steps), maximal)


def results(shift: float = 0.0) -> IlyushkinResults:
    """Results that are print itself, moved by `shift`."""
    curves = tuple(
        curve(w, p, round(PRINTED_MAXIMAL[p][w] + shift, 2)) for p in POLICIES for w in WORKLOADS
    )
    scatters = (Scatter("sr", 0.35, np.array([30.0, 400.0]), np.array([1.0, 7.0])),)
    pictures = Pictures(
        tuple(
            Parallelism(w, n, n / 2, n / 2 - 1, 1)
            for w in ("montage", "ligo", "sipht")
            for n in (50, 100)
        ),
        np.ones(len(WORK_EDGES_S) - 1),
        tuple((w, np.ones(len(RUNTIME_EDGES_S) - 1)) for w in ("montage", "ligo", "sipht")),
        scatters,
        np.array([[0.0, 10.0, 5.0, 3.0], [60.0, 12.0, 1.0, 0.0]]),
    )
    duels = tuple(Duel(21, kind, point("due", 0.9)) for kind in ("", "exact", "noisy", "learned"))
    read = tuple(PoolReading(r, w, p, 0.5) for r in READINGS for w in WORKLOADS for p in RULES)
    return IlyushkinResults(1, curves, pictures, duels, read)


def test_print_agrees_with_itself_and_not_with_what_is_two_steps_off() -> None:
    assert "32 of 32" in findings(results())[0]
    assert "32 of 32" in findings(results(-0.05))[0]
    assert "0 of 32" in findings(results(-0.10))[0]
    order = findings(results())[1].split("workload, ")[1].split()
    assert order[0] == order[2]


def test_the_maximal_utilization_is_what_most_repetitions_reach() -> None:
    three = tuple(curve("ligo", "bf", u, seed) for seed, u in enumerate((0.5, 0.6, 0.8)))
    assert replace(results(), curves=three).maximal("ligo", "bf") == 0.6
    none = Curve("ligo", "bf", 1, (point("bf", 0.05),), (False,), 0.01)
    assert replace(results(), curves=(none,)).maximal("ligo", "bf") == 0.0


def test_page_markdown_and_json_hold_every_cell() -> None:
    printed = results()
    calls = [printed.pictures, printed.duels, printed.curves, *[()] * 11, printed.readings]
    found = report(PaperPlan("full"), calls)
    markdown, page, told = found.markdown(), found.html(), found.json()
    for policy in POLICIES:
        assert f"| {policy} |" in markdown
        assert f"{PRINTED['table_2'][policy][0]:,} / 10" in markdown
    assert "0.70 / 0.70" in page
    assert "://" not in page
    assert page.count("<svg") > 12
    assert len(json.loads(json.dumps(told, allow_nan=False))["table_1"]) == 32
    assert [b.title.split(":")[0] for b in found.blocks][:1] == ["Table I"]


@pytest.mark.slow
def test_a_part_has_a_curve_for_each_policy_up_to_its_limit() -> None:
    curves = run_part("ligo", 5, workflows=120)
    assert [c.policy for c in curves] == list(POLICIES)
    for found in curves:
        assert all(found.stable[:-1])
        assert [p.offered for p in found.points] == [
            round(0.05 * k, 2) for k in range(1, len(found.points) + 1)
        ]
    rates = {c.policy: c.saturation for c in curves}
    assert rates["sr"] <= rates["slop:0.2"] <= rates["bf"] <= 1.0 + 1e-9


def test_a_reading_as_printed_is_near_in_every_cell() -> None:
    exact = tuple(
        PoolReading("shipped", w, p, PRINTED_MAXIMAL[p][w] + 0.01) for w in WORKLOADS for p in RULES
    )
    others = tuple(r for r in results().readings if r.reading != "shipped")
    rows = {row[0]: row[1:] for row in blocks(replace(results(), readings=exact + others))[-1].rows}
    assert rows["shipped"] == ("20 of 20", "0.00")
    # 0.5 everywhere: print has 0.45 to 0.55 on Montage four times (sr, slop:0.8, fes:1, fes:2) and
    # on SIPHT once.
    assert rows["whole"] == ("5 of 20", "0.45")


@pytest.mark.parametrize(
    ("saturation", "step"), [(0.04, 0.0), (0.5, 0.5), (0.549, 0.5), (0.999, 0.95)]
)
def test_steps_are_those_of_print(saturation: float, step: float) -> None:
    assert PoolReading("shipped", "ligo", "sr", saturation).step == step


@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_distances_and_waves_are_those_of_networkx(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from((a, b) for b in range(count) for a in range(b) if rng.random() < 0.3)
    tasks = [
        Task(f"t{v:02}", 1.0, parents=tuple(f"t{a:02}" for a in graph.predecessors(v)))
        for v in range(count)
    ]
    progress = Progress(Workflow.from_tasks("any", tasks))
    children = [sorted(graph.successors(v)) for v in range(count)]
    for _ in range(int(rng.integers(0, count))):
        done = int(rng.choice([v for v, g in enumerate(progress.generations) if g == 0]))
        progress.finish(done)
        graph.remove_node(done)
    entries = {v for v in graph if graph.in_degree(v) == 0}
    distance = nx.multi_source_dijkstra_path_length(graph, entries)
    waves = len(progress.sizes)
    assert (
        sizes_by_distance(progress, children)
        == np.bincount(list(distance.values()), minlength=waves).tolist()
    )
    wave = {v: i for i, layer in enumerate(nx.topological_generations(graph)) for v in layer}
    last = {v: max((wave[c] for c in graph.successors(v)), default=wave[v] + 1) for v in graph}
    lingering = [sum(distance[v] <= i < last[v] for v in graph) for i in range(waves)]
    assert sizes_lingering(progress, children) == lingering


def forks(count: int = 300) -> Workload:
    """Workflows of an entry of 1 s, then four tasks of 1 s."""
    tasks = [Task("e", 1.0), *(Task(f"t{i}", 1.0, parents=("e",)) for i in range(4))]
    fork = Workflow.from_tasks("fork", tasks)
    return Workload(
        "forks", (fork,) * count, np.zeros(count, dtype=np.int64), np.ones(count), mean_work_s=5.0
    )


@pytest.mark.slow
def test_readings_differ_where_they_should() -> None:
    """Held 4 + 4 processor-seconds as shipped, (1 + 4) + (4 + 4) on top, (1 + 4) + 4 with the whole
    target."""
    rates = {r: pool_saturation(forks(), ReadingPolicy(r, 1.0, 99)) for r in READINGS}
    assert rates["shipped"] == pytest.approx(5 / 8, rel=0.05)
    assert rates["exact"] == rates["rounded-down"] == rates["shipped"]
    assert rates["on-top"] < rates["future-on-top"] <= rates["shipped"]
    assert rates["distance"] == rates["lingering"] == rates["scaled-difference"] == rates["shipped"]
    assert (
        rates["whole"]
        == rates["distance-whole"]
        == rates["lingering-whole"]
        == pytest.approx(5 / 9, rel=0.05)
    )


def test_readings_scale_what_they_say() -> None:
    """Two eligible, then eight: half of 8; 2 and half of the difference of 6; 2 and half of 8.
    Nothing once 8 run."""
    after = [Task(f"t{i}", 1.0, parents=("a", "b")) for i in range(8)]
    progress = Progress(Workflow.from_tasks("two-eight", [Task("a", 1.0), Task("b", 1.0), *after]))
    names = ("shipped", "scaled-difference", "whole")
    assert [ReadingPolicy(name, 0.5, 99).target(progress) for name in names] == [4, 5, 6]
    for task in progress.entries():
        progress.finish(task)
    assert [ReadingPolicy(name, 0.5, 99).target(progress) for name in names] == [4, 8, 8]


def test_one_parent_done_is_enough_by_distance() -> None:
    """a before b, both before c: by distance b and c stand side by side, and a lingers until c
    could start."""
    progress = Progress(
        Workflow.from_tasks(
            "abc",
            [Task("a", 1.0), Task("b", 1.0, parents=("a",)), Task("c", 1.0, parents=("a", "b"))],
        )
    )
    assert ReadingPolicy("shipped", 1.0, 99).target(progress) == 1
    assert ReadingPolicy("distance", 1.0, 99).target(progress) == 2
    assert ReadingPolicy("distance-whole", 1.0, 99).target(progress) == 1 + 2
    assert ReadingPolicy("distance-whole", 1.0, 0).target(progress) == 1
    assert ReadingPolicy("lingering", 1.0, 99).target(progress) == 3
    assert ReadingPolicy("lingering-whole", 1.0, 99).target(progress) == 1 + 3
    assert ReadingPolicy("lingering-whole", 1.0, 0).target(progress) == 1
