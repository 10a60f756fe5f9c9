"""Parts of nodes: what jobs ask for, and how many there are, held against trying it out."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from windrow.model.nodes import Need, Nodes
from windrow.model.parts import AGENT_BYTES, Billing, Sharing, parts_of
from windrow.model.resources import NodeShape
from windrow.model.site import NodeKind

MIB = 1 << 20
GIB = 1 << 30
PLAIN = Sharing(core_bytes=400 * MIB, even_bytes=1000 * MIB)
THIN = NodeKind(NodeShape(4, 2000 * MIB), 4)
GPUS = NodeKind(NodeShape(8, 6000 * MIB, counts=(("gpus", 2),)), 2)
BIG = NodeKind(NodeShape(8, 16000 * MIB), 2)
KINDS = (THIN, GPUS, BIG)


def test_a_task_of_a_core_takes_a_core_and_the_memory_that_goes_with_it() -> None:
    assert parts_of([Need(1)], KINDS, PLAIN) == (
        NodeKind(NodeShape(1, 400 * MIB, 0), 4 * 4 + 2 * 8),
    )


def test_nodes_with_devices_are_left_to_those_who_need_them() -> None:
    assert parts_of([Need(1)], [GPUS], PLAIN)[0].count == 2 * 8
    assert parts_of([Need(1, counts=(("gpus", 1),))], KINDS, PLAIN)[0].count == 2


def test_rare_nodes_of_large_memory_are_left_to_those_who_need_it() -> None:
    few = replace(BIG, count=1)
    assert parts_of([Need(1)], [THIN, few], PLAIN)[0].count == 4 * 4
    assert parts_of([Need(1, 500 * MIB)], [THIN, few], PLAIN)[0].count == 4 * 4
    assert parts_of([Need(1, 700 * MIB)], [THIN, few], PLAIN)[0].count == 4 * 2 + 8
    assert parts_of([Need(1, 3000 * MIB)], [THIN, few], PLAIN)[0].count == 5
    assert parts_of([Need(5)], [THIN, few], PLAIN)[0].count == 1


def test_nodes_of_large_memory_that_are_not_rare_are_for_all() -> None:
    assert parts_of([Need(1)], [THIN, BIG], PLAIN)[0].count == 4 * 4 + 2 * 8
    assert parts_of([Need(1)], [BIG], PLAIN)[0].count == 2 * 8
    not_counted = replace(PLAIN, counts_memory=False)
    assert parts_of([Need(1)], [THIN, replace(BIG, count=1)], not_counted)[0].count == 4 * 4 + 8


def test_a_task_has_gpus_of_the_type_that_it_names() -> None:
    one, other = (
        NodeKind(NodeShape(8, 6000 * MIB, counts=(("gpus", 2), (f"gpus:{kind}", 2))), 1)
        for kind in ("a100", "v100")
    )
    typed = parts_of([Need(1, counts=(("gpus", 1), ("gpus:a100", 1)))], [one, other, BIG], PLAIN)
    assert typed[0].count == 2
    assert parts_of([Need(1, counts=(("gpus", 1),))], [one, other, BIG], PLAIN)[0].count == 2
    assert not parts_of([Need(1, counts=(("gpus", 1), ("gpus:h100", 1)))], [one, other], PLAIN)
    assert str(typed[0].shape) == "1 core, 400 MiB of memory and 1 a100 GPU"


def test_memory_for_the_agent_is_added_if_it_costs_nothing() -> None:
    assert PLAIN.part_for(Need(1, 100 * MIB)).memory_bytes == 100 * MIB + AGENT_BYTES
    assert PLAIN.part_for(Need(1, 390 * MIB)).memory_bytes == 400 * MIB
    assert PLAIN.part_for(Need(1, 900 * MIB)).memory_bytes == 900 * MIB


def test_who_needs_more_memory_than_a_core_may_have_gets_more_cores() -> None:
    capped = Sharing(400 * MIB, 500 * MIB, most_core_bytes=500 * MIB, most_cores=2)
    assert capped.part_for(Need(1, 900 * MIB)) == NodeShape(2, 900 * MIB, 0)
    assert parts_of([Need(1, 900 * MIB)], [THIN], capped)[0].count == 4
    assert parts_of([Need(3)], [THIN], capped) == ()


def test_a_job_has_no_more_than_its_user_may_have() -> None:
    bound = Sharing(400 * MIB, 400 * MIB, bounds=(("cores", 4, "cpu=4"), ("memory", GIB, "mem=1G")))
    assert parts_of([Need(1)], KINDS, bound)[0].count == 2
    assert bound.most_parts(NodeShape(1, 400 * MIB)) == (2, "mem=1G")


def test_a_job_on_few_nodes_has_the_best_of_them() -> None:
    narrow = Sharing(400 * MIB, 400 * MIB, most_nodes=3)
    assert narrow.parts_of_job(NodeShape(1, 400 * MIB), [THIN, BIG]) == 8 + 8 + 4


def test_tasks_of_several_kinds_have_a_part_that_holds_each_of_them() -> None:
    kinds = parts_of([Need(4, 500 * MIB), Need(1, 1800 * MIB)], KINDS, PLAIN)
    assert NodeShape(4, 1800 * MIB, 0) in [kind.shape for kind in kinds]


def test_what_is_billed_is_the_sum_or_the_most() -> None:
    part = NodeShape(1, 4 * GIB, counts=(("gpus", 1),))
    assert Billing(1, 0.5, 8).of(part) == 1 + 2 + 8
    assert Billing(1, 0.5, 8, takes_most=True).of(part) == 8


def test_what_a_job_blocks_is_by_its_memory_if_that_is_more() -> None:
    assert PLAIN.blocks_cores(1, 3000 * MIB) == 3
    assert PLAIN.blocks_cores(4, 3000 * MIB) == 4
    assert Sharing(1, 1, counts_memory=False).blocks_cores(1, GIB) == 1


needs = st.builds(
    lambda cores, mib, gpus: Need(cores, mib * MIB, counts=(("gpus", gpus),) if gpus else ()),
    st.integers(1, 9),
    st.sampled_from((0, 50, 300, 390, 700, 1900, 5000, 15000)),
    st.sampled_from((0, 0, 1, 2)),
)


@examples(200)
@given(st.lists(needs, min_size=1, max_size=12))
def test_each_part_holds_a_task_and_that_many_fit_on_the_nodes(tasks: list[Need]) -> None:
    kinds = parts_of(tasks, KINDS, PLAIN)
    for task in tasks:
        holds = [kind for kind in kinds if task.fits(kind.shape)]
        assert bool(holds) == any(task.fits(kind.shape) for kind in KINDS)
    for kind in kinds:
        nodes = Nodes(each.shape for each in KINDS for _ in range(each.count))
        shape = kind.shape
        need = Need(shape.cores, shape.memory_bytes or 0, counts=shape.counts)
        for number in range(kind.count):
            places = nodes.room(need)
            assert places, (kind, number)
            nodes.take(number, need, places)
