"""Replicas of scratch volumes: the rule against its law, and what it gives where disks are wiped at random."""

from __future__ import annotations

import math
import random
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.storage.replicas import ALWAYS, COST_BENEFIT, NEVER, RULES, Replicas

TIMES = st.floats(0, 1e6)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["finished", "copied", "lost", "passed"]), st.sampled_from("ab"), TIMES, TIMES, st.booleans()
    ),
    max_size=30,
)


@given(st.sampled_from(RULES), STEPS)
def test_a_replica_is_made_where_its_law_says_so(rule: str, steps: list[tuple[str, str, float, float, bool]]) -> None:
    """The law over the whole history, told again from the beginning for each decision."""
    replicas = Replicas(rule)
    for at, (what, volume, one_s, other_s, has_room) in enumerate(steps):
        if what == "copied":
            replicas.copied(volume, one_s)
        elif what == "lost":
            replicas.lost(volume)
        elif what == "passed":
            replicas.passed(one_s)
        else:
            wants = replicas.wants(volume, one_s, other_s, has_room=has_room)
            before = steps[:at]
            copies = [s for w, _, s, _, _ in before if w == "copied"]
            cost = sum(copies) / len(copies) if copies else 0.0
            seen = 2592 + sum(s for w, _, s, _, _ in before if w == "passed")
            mttf = seen / (0.001 + sum(w == "lost" for w, *_ in before))
            risk = one_s
            for w, v, s, left, _ in reversed(before):
                if v == volume and (w in ("copied", "lost") or (w == "finished" and left <= 0)):
                    break
                risk += s if v == volume and w == "finished" else 0.0
            benefit = risk * (1 - math.exp(-other_s / mttf))
            law = {NEVER: False, ALWAYS: True, COST_BENEFIT: benefit > cost}[rule]
            if abs(benefit - cost) > 1e-9 * max(benefit, cost, 1.0):
                assert wants == (law and has_room and other_s > 0)


def play(
    rule: str, copy_s: float, mtbf_s: float, seed: int, *, width: int = 64, depth: int = 3, nodes: int = 16
) -> float:
    """When all pipelines are done: each node runs one after the other, and its disk is wiped now and then.

    Copies go over one link, one after the other.
    """
    draw, replicas, left = random.Random(seed), Replicas(rule), width
    wiped = [draw.expovariate(1 / mtbf_s) if mtbf_s else math.inf for _ in range(nodes)]
    stage, kept, volume = [depth] * nodes, [0] * nodes, [-1] * nodes  # done, as of the last replica, and whose
    busy = [(0.0, node) for node in range(nodes)]
    end = link = 0.0
    while busy:
        now, node = min(busy)
        busy.remove((now, node))
        if stage[node] == depth:
            if not left:
                continue
            left, stage[node], kept[node], volume[node] = left - 1, 0, 0, left
        took = 60.0
        if now + took < wiped[node]:
            stage[node] += 1
            if replicas.wants(str(volume[node]), 60.0, 60.0 * (depth - stage[node])):
                link = max(link, now + took) + copy_s
                spent, took = link - now - took, link - now
                if now + took < wiped[node]:
                    kept[node] = stage[node]
                    replicas.copied(str(volume[node]), spent)
        if now + took >= wiped[node]:
            replicas.lost(str(volume[node]))
            took = wiped[node] - now + (copy_s if kept[node] else 0.0)  # a replica is copied back
            stage[node] = kept[node]
            wiped[node] += draw.expovariate(1 / mtbf_s)
        replicas.passed(took)
        end = max(end, now + took)
        busy.append((now + took, node))
    return end


@pytest.mark.parametrize(("copy_s", "worse"), [(4.0, 1.02), (8.0, 0.9)], ids=["small", "large"])
def test_never_always_and_cost_benefit_are_ordered_as_in_figure_3_6(copy_s: float, worse: float) -> None:
    """64 pipelines of 3 stages of a minute: without losses, and with disks that are wiped every 180 s on average."""
    calm = {rule: play(rule, copy_s, 0, 1) for rule in RULES}
    assert calm[NEVER] == 4 * 180
    assert calm[NEVER] < calm[COST_BENEFIT] == calm[NEVER] + copy_s < calm[ALWAYS]
    rough = {rule: mean(play(rule, copy_s, 180, seed) for seed in range(60)) for rule in RULES}
    assert rough[COST_BENEFIT] < 0.8 * rough[NEVER]
    assert rough[COST_BENEFIT] < worse * rough[ALWAYS]
