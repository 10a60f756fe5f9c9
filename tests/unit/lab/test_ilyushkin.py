"""The reproduction of Ilyushkin, Ghit and Epema: what is compared with print, on made-up and on small real results."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from windrow.lab.ilyushkin import POLICIES, PRINTED_MAXIMAL, PRINTED_TIMES, Curve, Results, run_part
from windrow.lab.ilyushkin_beyond import CHOSEN_ON, JUDGED_ON, Duel
from windrow.lab.ilyushkin_pictures import RUNTIME_EDGES_S, WORK_EDGES_S, Parallelism, Pictures, Scatter
from windrow.lab.ilyushkin_readings import READINGS, RULES, Reading, ReadingPolicy, pool_saturation
from windrow.lab.stream_metrics import SizeFigures, StreamFigures
from windrow.lab.stream_workload import SIZES, WORKLOADS, Workload
from windrow.model import Task, Workflow
from windrow.report.ilyushkin import blocks, ilyushkin_json, ilyushkin_markdown, ilyushkin_page, summary

_SIZE = SizeFigures("small", 5, 10.0, 20.0, 15.0, 2.0)


def point(policy: str, offered: float) -> StreamFigures:
    sizes = tuple(replace(_SIZE, size=size) for size in SIZES)
    return StreamFigures(policy, offered, 9, 1.0, 2.0, 3.0, 1.5, 2.0, 3.0, 4.0, offered, 0.1, 1.0, 4, sizes)


def curve(workload: str, policy: str, maximal: float, seed: int = 1) -> Curve:
    steps = [round(0.05 * k, 2) for k in range(1, round(maximal / 0.05) + 2)]
    points = tuple(point(policy, u) for u in steps)
    return Curve(workload, policy, seed, points, tuple(u <= maximal for u in steps), maximal)


def results(shift: float = 0.0) -> Results:
    """Results that are print itself, moved by `shift`."""
    curves = tuple(
        curve(w, p, round(PRINTED_MAXIMAL[p][k] + shift, 2)) for p in POLICIES for k, w in enumerate(WORKLOADS)
    )
    scatters = (Scatter("sr", 0.35, np.array([30.0, 400.0]), np.array([1.0, 7.0])),)
    pictures = Pictures(
        tuple(Parallelism(w, n, n / 2, n / 2 - 1, 1) for w in ("montage", "ligo", "sipht") for n in (50, 100)),
        np.ones(len(WORK_EDGES_S) - 1),
        tuple((w, np.ones(len(RUNTIME_EDGES_S) - 1)) for w in ("montage", "ligo", "sipht")),
        scatters,
        np.array([[0.0, 10.0, 5.0, 3.0], [60.0, 12.0, 1.0, 0.0]]),
    )
    duels = tuple(Duel(21, kind, point("due", 0.9)) for kind in ("", "exact", "noisy", "learnt"))
    read = tuple(Reading(r, w, p, 0.5) for r in READINGS for w in ("montage", "ligo", "sipht") for p in RULES)
    return Results("full", 1, curves, pictures, duels, read)


def test_print_agrees_with_itself_and_not_with_what_is_two_steps_off() -> None:
    assert "32 of 32" in summary(results())[0]
    assert "32 of 32" in summary(results(-0.05))[0]
    assert "0 of 32" in summary(results(-0.10))[0]
    order = summary(results())[1].split("workload, ")[1].split()
    assert order[0] == order[2]


def test_the_maximal_utilization_is_what_most_repetitions_reach() -> None:
    three = tuple(curve("ligo", "bf", u, seed) for seed, u in enumerate((0.5, 0.6, 0.8)))
    assert replace(results(), curves=three).maximal("ligo", "bf") == 0.6
    none = Curve("ligo", "bf", 1, (point("bf", 0.05),), (False,), 0.01)
    assert replace(results(), curves=(none,)).maximal("ligo", "bf") == 0.0


def test_page_markdown_and_json_hold_every_cell() -> None:
    found = results()
    markdown, page, told = ilyushkin_markdown(found), ilyushkin_page(found), ilyushkin_json(found)
    for policy in POLICIES:
        assert f"| {policy} |" in markdown
        assert f"{PRINTED_TIMES[policy][0]:,} / 10" in markdown
    assert "0.70 / 0.70" in page
    assert "http" not in page
    assert page.count("<svg") > 12
    assert len(json.loads(json.dumps(told, allow_nan=False))["table_1"]) == 32
    assert [b.title.split(":")[0] for b in blocks(found)][:1] == ["Table I"]


def test_policies_are_not_judged_on_what_they_were_chosen_on() -> None:
    assert not set(CHOSEN_ON) & set(JUDGED_ON)


@pytest.mark.slow
def test_a_part_has_a_curve_for_each_policy_up_to_its_limit() -> None:
    curves = run_part("ligo", 5, workflows=120)
    assert [c.policy for c in curves] == list(POLICIES)
    for found in curves:
        assert all(found.stable[:-1])
        assert [p.offered for p in found.points] == [round(0.05 * k, 2) for k in range(1, len(found.points) + 1)]
    rates = {c.policy: c.saturation for c in curves}
    assert rates["sr"] <= rates["slop:0.2"] <= rates["bf"] <= 1.0 + 1e-9


def test_readings_differ_where_they_should() -> None:
    """An entry of 1 s, then four tasks: held 4 + 4 processor-seconds as shipped, (1 + 4) + (4 + 4) on top."""
    tasks = [Task("e", 1.0), *(Task(f"t{i}", 1.0, parents=("e",)) for i in range(4))]
    fork = Workflow.from_tasks("fork", tasks)
    forks = Workload("forks", (fork,) * 300, np.zeros(300, dtype=np.int64), np.ones(300), mean_work_s=5.0)
    rates = {r: pool_saturation(forks, ReadingPolicy(r, 1.0, 99)) for r in READINGS}
    assert rates["shipped"] == pytest.approx(5 / 8, rel=0.05)
    assert rates["exact"] == rates["rounded-down"] == rates["shipped"]
    assert rates["on-top"] < rates["future-on-top"] <= rates["shipped"]
