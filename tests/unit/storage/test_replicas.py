"""Replicas of scratch volumes: the rule against its law, and what it gives where disks are wiped at
random."""

from __future__ import annotations

import math
from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.agent.data.local_files import LocalFiles
from windrow.agent.data.replicas import ALWAYS, COST_BENEFIT, NEVER, RULES, Replicas
from windrow.agent.event_file import AttemptFinished, OutputsCommitted
from windrow.agent.job_file import TaskSpec
from windrow.agent.order import Committed
from windrow.model.attempt import Attempt
from windrow.model.volume import VolumeMount
from windrow.storage.volumes import is_backup
from windrow_lab.reproductions.bent.copies import done_s

TIMES = st.floats(0, 1e6)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["finished", "copied", "lost", "passed"]),
        st.sampled_from("ab"),
        TIMES,
        TIMES,
        st.booleans(),
    ),
    max_size=30,
)


@given(st.sampled_from(RULES), STEPS)
def test_a_replica_is_made_where_its_law_says_so(
    rule: str, steps: list[tuple[str, str, float, float, bool]]
) -> None:
    """The law over the whole history, told again from the beginning for each decision."""
    replicas, started, copies = Replicas(rule), dict[str, int](), list[tuple[float, int]]()
    for at, (what, volume, one_s, other_s, has_room) in enumerate(steps):
        if what == "copied":
            replicas.copied(volume, one_s)
            copies.append((one_s, started.pop(volume, 1)))
        elif what == "lost":
            replicas.lost(volume)
            started.pop(volume, None)
        elif what == "passed":
            replicas.passed(one_s)
        else:
            wants = replicas.wants(volume, one_s, other_s, has_room=has_room)
            before = steps[:at]
            started.pop(volume, None)
            one, many = (
                sum(s for s, _ in copies) / (sum(n for _, n in copies) or 1),
                1 + len(started),
            )
            cost = many * one if copies else 0.0 if many == 1 else math.inf
            seen = 2592 + sum(s for w, _, s, _, _ in before if w == "passed")
            mttf = seen / (0.001 + sum(w == "lost" for w, *_ in before))
            risk = one_s
            for w, v, s, left, _ in reversed(before):
                if v == volume and (w in ("copied", "lost") or (w == "finished" and left <= 0)):
                    break
                risk += s if v == volume and w == "finished" else 0.0
            benefit = risk * (1 - math.exp(-other_s / mttf))
            law = {NEVER: False, ALWAYS: True, COST_BENEFIT: benefit > cost}[rule]
            started |= {volume: many} if wants else {}
            if not abs(benefit - cost) <= 1e-9 * max(benefit, min(cost, 1e300), 1.0):
                assert wants == (law and has_room and other_s > 0)


@pytest.mark.parametrize(
    ("copy_s", "never", "always"), [(4.0, 0.75, 1.02), (8.0, 0.85, 0.65)], ids=["small", "large"]
)
def test_never_always_and_cost_benefit_are_ordered_as_in_figure_3_6(
    copy_s: float, never: float, always: float
) -> None:
    """64 pipelines of 3 stages of a minute: without losses, and with disks that are wiped every 180
    s on average."""
    calm = {rule: done_s(rule, copy_s, 0, 1) for rule in RULES}
    assert calm[NEVER] == 4 * 180
    assert calm[NEVER] < calm[COST_BENEFIT] == calm[NEVER] + copy_s < calm[ALWAYS]
    rough = {rule: mean(done_s(rule, copy_s, 180, seed) for seed in range(60)) for rule in RULES}
    assert rough[COST_BENEFIT] < never * rough[NEVER]
    assert rough[COST_BENEFIT] < always * rough[ALWAYS]


STATES = [f".windrow-volumes/w/v-1.{place}" for place in range(1, 7)]


@given(st.integers(0, 6), st.sets(st.integers(0, 5)))
def test_a_replica_is_kept_until_a_later_one_is_there_or_nothing_needs_its_volume(
    done: int, copied: set[int]
) -> None:
    """`done` tasks of six in a row have finished; of what they left, some was copied."""
    local = {STATES[place] for place in range(done) if place not in copied}
    due = {STATES[place] for place in range(done - 1)} | ({STATES[5]} if done == 6 else set())
    for place in range(max(0, done - 1)):
        later = {other for other in copied if place < other < done}
        is_needed = done < 6 and not later
        assert is_backup(STATES[place], local, due) == is_needed
    assert not is_backup("data/x.1", {"data/x.2"}, set())


def test_an_agent_copies_what_was_left_in_a_volume_where_that_pays() -> None:
    mounts = [
        VolumeMount("/w", "v", f"/h/v.{n}" if n else "", f"/h/v.{n + 1}", 1) for n in range(3)
    ]
    tasks = [
        TaskSpec(
            *(n, f"t{n}", "k", ("x",), "/h", {}),
            inputs=(mounts[n].before,) if n else (),
            outputs=(mounts[n].after,),
            expected_s=60.0,
            mounts=(mounts[n],),
            local=(mounts[n].after,),
        )
        for n in range(3)
    ]
    files = LocalFiles(Replicas())
    files.adopt(tasks)
    files.hear(
        AttemptFinished(60.0, Attempt(0, 1, begun=0.0, sizes=(1,), local=(mounts[0].after,)))
    )
    assert files.to_commit() == {0: ["/h/v.1"]}, "the first copy is made, and measured"
    assert files.committed(Committed("/h/v.1"), 70.0) == OutputsCommitted(70.0, 0, ("/h/v.1",), ())
    files.hear(
        AttemptFinished(150.0, Attempt(1, 1, begun=90.0, sizes=(1,), local=(mounts[1].after,)))
    )
    assert files.to_commit() == {}, "a minute at risk is not worth ten seconds of copying"
    files.lose(0, "node lost")
    files.hear(
        AttemptFinished(300.0, Attempt(1, 2, begun=240.0, sizes=(1,), local=(mounts[1].after,)))
    )
    assert files.to_commit() == {}
    for _ in range(40):
        files.lose(0, "node lost")
        files.hear(
            AttemptFinished(300.0, Attempt(1, 3, begun=240.0, sizes=(1,), local=(mounts[1].after,)))
        )
    assert files.to_commit() == {0: ["/h/v.2"]}, "where nodes die often it is"
    assert files.hear(
        AttemptFinished(400.0, Attempt(2, 1, begun=340.0, sizes=(1,), local=(mounts[2].after,)))
    ) == ["/h/v.3"]
