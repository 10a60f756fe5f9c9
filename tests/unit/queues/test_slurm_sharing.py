"""How a partition of Slurm shares its nodes, and jobs counted in parts like ours."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from windrow.model.parts import Billing, Sharing
from windrow.model.resources import NodeShape
from windrow.queues.port import OthersJob
from windrow.queues.slurm.sharing import Counted, sharing_of, why_whole
from windrow.queues.slurm.text import (
    SlurmNode,
    parse_record,
    parse_shared,
    parse_shared_past,
)
from windrow.queues.slurm.tres import Bound

MIB = 1 << 20
CONFIG = {"SelectType": "select/cons_tres", "SelectTypeParameters": "CR_CORE_MEMORY"}
# As 22.05 prints it, shortened.
MAIN = parse_record(
    "PartitionName=main Default=YES ExclusiveUser=NO MaxNodes=UNLIMITED MaxCPUsPerNode=UNLIMITED "
    "OverSubscribe=NO State=UP SelectTypeParameters=NONE DefMemPerCPU=400 MaxMemPerNode=UNLIMITED "
    "TRESBillingWeights=CPU=1.0,Mem=0.5G,GRES/gpu=8.0"
)
NODES = [
    *(SlurmNode(f"n{i}", True, True, NodeShape(4, 2000 * MIB), frozenset()) for i in (1, 2)),
    SlurmNode("g1", True, True, NodeShape(8, 8000 * MIB, counts=(("gpus", 2),)), frozenset()),
]
CORE = NodeShape(1, 400 * MIB)


def job(number: int, **more: Any) -> OthersJob:
    return replace(OthersJob(str(number), 1, 60, True, 0.0, 1.0, "bob", 1, 400 * MIB), **more)


def counted(sharing: Sharing | None = None, part: NodeShape = CORE) -> Counted:
    return Counted(sharing or sharing_of(CONFIG, MAIN, NODES, []), part, NODES, ["n1", "n2", "g1"])


def test_how_a_partition_shares_is_read() -> None:
    assert sharing_of(CONFIG, MAIN, NODES, []) == Sharing(
        core_bytes=400 * MIB, even_bytes=750 * MIB, billing=Billing(1.0, 0.5, 8.0)
    )


def test_without_a_word_on_memory_a_core_has_an_even_share() -> None:
    silent = MAIN | {"DefMemPerCPU": "UNLIMITED"}
    assert sharing_of(CONFIG, silent, NODES, []).core_bytes == 500 * MIB


def test_bounds_of_the_partition_and_of_accounts_are_read() -> None:
    bounds = [
        Bound("cpu", 6, "six"),
        Bound("mem", 1000 * MIB, "mem"),
        Bound("gres/gpu", 1, "one"),
        Bound("node", 1, "node"),
        Bound("cpu", 3, "each", is_per_node=True),
    ]
    partition = MAIN | {"MaxMemPerCPU": "500", "MaxCPUsPerNode": "2", "ExclusiveUser": "YES"}
    found = sharing_of(CONFIG | {"PriorityFlags": "MAX_TRES"}, partition, NODES, bounds)
    assert (found.most_core_bytes, found.most_cores, found.most_nodes) == (500 * MIB, 2, 1)
    assert found.bounds == (
        ("cores", 6, "six"),
        ("memory", 1000 * MIB, "mem"),
        ("gpus", 1, "one"),
    )
    assert found.by_user
    assert found.billing.takes_most


def test_whole_nodes_are_told_from_parts() -> None:
    assert why_whole(CONFIG, MAIN) == ""
    assert why_whole({"SelectType": "select/linear"}, MAIN) == "SelectType=select/linear"
    whole = MAIN | {"OverSubscribe": "EXCLUSIVE"}
    assert why_whole(CONFIG, whole) == "OverSubscribe=EXCLUSIVE of partition main"


def test_a_job_counts_the_parts_that_it_blocks() -> None:
    jobs = [
        job(1, hosts=("n1",)),
        job(2, cores=1, memory_bytes=1500 * MIB, hosts=("n1",)),
        job(3, is_alone=True, hosts=("n2",)),
    ]
    assert [one.nodes for one in counted().jobs(jobs, "me")] == [1, 2, 4]


def test_jobs_on_nodes_that_are_not_for_us_do_not_count() -> None:
    jobs = [job(1, cores=8, hosts=("g1",)), job(2, cores=2, hosts=("n1", "g1"))]
    assert [(one.id, one.nodes) for one in counted().jobs(jobs, "me")] == [("2", 1)]


def test_waiting_jobs_that_want_nodes_alone_take_all_of_them() -> None:
    waits = job(1, nodes=2, cores=2, is_alone=True, is_running=False, hosts=())
    assert counted().jobs([waits], "me")[0].nodes == 8


def test_running_jobs_never_take_more_than_there_is() -> None:
    jobs = [job(i, cores=4, memory_bytes=2000 * MIB, hosts=("n1",)) for i in range(4)]
    found = counted().jobs([*jobs, job(9, user="me", cores=2, hosts=("n2",))], "me")
    assert sum(one.nodes for one in found) == counted().parts() == 8
    assert found[0].id == "9"
    assert found[0].nodes == 2


def test_rounding_keeps_the_sum() -> None:
    part = NodeShape(4, 1600 * MIB)
    jobs = [job(i, hosts=("n1",)) for i in range(4)]
    assert sum(one.nodes for one in counted(part=part).jobs(jobs, "me")) == 1


def test_a_node_of_one_user_is_lost_to_all_others() -> None:
    by_user = replace(sharing_of(CONFIG, MAIN, NODES, []), by_user=True)
    jobs = [job(1, hosts=("n1",)), job(2, user="me", hosts=("n2",))]
    assert {one.id: one.nodes for one in counted(by_user).jobs(jobs, "me")} == {"1": 4, "2": 1}


def test_listings_tell_what_jobs_have() -> None:
    # Recorded with 22.05.
    rows = (
        "10 |RUNNING|1700000000|3:00|2|4294901754|None|cpu=8,mem=4000M,node=2|NO|n[1-2]|bob\n"
        "5|PENDING|N/A|5:00|1|4294901759|Priority|cpu=6,mem=1800M,node=1,billing=6|OK||bob\n"
    )
    first, second = parse_shared(rows, 60)
    assert (first.cores, first.memory_bytes, first.is_alone) == (8, 4000 * MIB, True)
    assert first.hosts == ("n1", "n2")
    assert (second.cores, second.is_running, second.hosts) == (6, False, ())
    past = (
        "1|COMPLETED|1700000000|1700000001|1700000009|1|5|n5|bob|"
        "billing=5,cpu=5,mem=1500M,node=1|billing=5,cpu=5,mem=1500M,node=1|job.sh\n"
    )
    (told,) = parse_shared_past(past, 60, "me")
    assert (told.cores, told.memory_bytes, told.nodes) == (5, 1500 * MIB, 1)
    assert counted().past([told])[0].nodes == 5
