"""Needs of tasks on a real Slurm whose nodes differ: thin ones, some with GPUs, one with much
memory and disk. Jobs have whole nodes; those of parts are in `test_parts_on_slurm`.

`WINDROW_FULL=1` runs every case instead of a sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.real.needs import MIB, Case, many, run
from tests.real.works import IS_FULL, private
from tests.slurm.cluster import SlurmCluster, missing
from tests.slurm.settings import Kind, Settings

from windrow.app.doctor import examine
from windrow.model.resources import NodeShape
from windrow.queues.slurm.queue import SlurmQueue

KINDS = (
    Kind(2, 2, 1000),
    Kind(2, 4, 2000, gres="gpu:2"),
    Kind(1, 8, 8000, tmp_mib=5000),
    Kind(1, 4, 4000, gres="gpu:a100:4,lic:2"),
)
LIC, LARGE = {"resources": {"lic": 1}}, {"memory": "7000MiB"}
THIN, GPU = NodeShape(2, 1000 * MIB, 0), NodeShape(4, 2000 * MIB, 0, (("gpus", 2),))
FAT, ALL = (
    NodeShape(8, 8000 * MIB, 5000 * MIB),
    NodeShape(4, 4000 * MIB, 0, (("gpus", 4), ("gpus:a100", 4), ("lic", 2))),
)
SHAPES = {"n1": THIN, "n2": THIN, "n3": GPU, "n4": GPU, "n5": FAT, "n6": ALL}

MIXED = {**many(3, gpus=1), **many(2, cores=8), **many(2, resources={"lic": 1}), **many(3)}
CASES = (
    Case("one task of each kind, in a job for each kind of nodes", MIXED),
    Case("whole nodes with GPUs", {**many(2, nodes=2, gpus=2), **many(2, gpus=1)}),
    Case("a GPU each, and tasks without", {**many(6, gpus=1), **many(4)}, jobs=1),
    Case("from kind to kind", {"a": {"gpus": 1}, "b": {"after": "a", **LARGE}, "c": {"after": "b", "gpus": 2}}),  # noqa: E501
    Case("more GPUs than any node has", many(1, gpus=5), refused="task gpus-0 needs 5 GPUs; a "
                                                                 "node of slurm has 4"),
    Case("a retry has a GPU of its own again", {"retries-0": {"gpus": 1, "retries": 1}, **many(3, gpus=1)}),  # noqa: E501
    Case("plain tasks", many(6)),
    Case("plain tasks one by one", many(4), "individual", jobs=4),
    Case("two GPUs each", many(5, gpus=2)),
    Case("four GPUs each, on the one node that has them", many(3, gpus=4)),
    Case("GPUs one by one", many(5, gpus=1), "individual", jobs=5),
    Case("GPUs level by level", {**many(3, gpus=1), "last": {"after": "gpus-*", "gpus": 2}}, "level-by-level", jobs=2),  # noqa: E501
    Case("all in one with GPUs", {**many(3, gpus=1), "after-0": {"after": "gpus-*"}}, "giant", jobs=1),  # noqa: E501
    Case("GPUs by glume", {**many(3, gpus=1), **many(3)}, "glume"),
    Case("all kinds by foresight", MIXED, "foresight"),
    Case("GPUs and large memory by zhang", {**many(2, gpus=2), **many(2, **LARGE)}, "zhang"),
    Case("more memory than thin nodes have", many(3, memory="1500MiB")),
    Case("more memory than most nodes have", many(3, memory="3000MiB")),
    Case("memory of the largest node", many(2, memory="7000MiB")),
    Case("memory that fills a node twice", many(4, memory="3500MiB", cores=4)),
    Case("more cores than thin nodes have", many(4, cores=3)),
    Case("all cores of the largest node", many(2, cores=8)),
    Case("disk", many(3, disk="2000MiB")),
    Case("disk and memory", many(2, disk="3000MiB", memory="2000MiB")),
    Case("a named resource", many(4, resources={"lic": 1})),
    Case("all of a named resource", many(2, resources={"lic": 2})),
    Case("a named resource and GPUs", many(3, gpus=2, resources={"lic": 1})),
    Case("GPUs and memory", many(2, gpus=1, memory="1900MiB")),
    Case("GPUs by default, and one task without", {**many(3), "none-0": {"gpus": 0}}, defaults={"gpus": 1}),  # noqa: E501
    Case("resources by default, and a task without", {**many(2), "none-0": {"resources": {"lic": 0}}}, defaults=LIC),  # noqa: E501
    Case("whole nodes", many(2, nodes=2)),
    Case("a whole node with four GPUs", many(2, nodes=1, gpus=4)),
    Case("whole nodes beside others", {**many(1, nodes=3), **many(4)}),
    Case("GPUs and large memory, one by one", {**many(2, gpus=2), **many(2, **LARGE)}, "individual", jobs=4),  # noqa: E501
    Case("GPUs and large memory on one level", {**many(2, gpus=2), **many(2, **LARGE)}, "level-by-level", jobs=2),  # noqa: E501
    Case("GPUs and large memory in one job", {**many(2, gpus=2), **many(2, **LARGE)}, "giant", jobs=2),  # noqa: E501
    Case("too many cores", many(1, cores=9), refused="task cores-0 needs 9 cores; a node of "
                                                     "slurm has 8"),
    Case("too much memory", many(1, memory="9000MiB"), refused="needs 8.8 GiB of memory; a node "
                                                               "of slurm has 7.8 GiB"),
    Case("too much disk", many(1, disk="6000MiB"), refused="needs 5.9 GiB of disk; a node of "
                                                           "slurm has 4.9 GiB"),
    Case("too many of a named resource", many(1, resources={"lic": 3}), refused="needs 3 lic; a node of slurm has 2"),  # noqa: E501
    Case("a resource that no node has", many(1, resources={"fpga": 1}), refused="needs 1 fpga; a node of slurm has 0"),  # noqa: E501
    Case("more GPU nodes than there are", many(1, nodes=4, gpus=1), refused="needs 4 nodes with 1 GPU; slurm has 3"),  # noqa: E501
    Case("what no node has at once", many(1, gpus=1, cores=8), refused="needs 8 cores, 1 GPU; a node of slurm has not"),  # noqa: E501
)  # fmt: skip


@pytest.fixture(scope="module")
def mixed() -> Iterator[SlurmCluster]:
    """Six nodes of four kinds."""
    if reason := missing():
        pytest.skip(f"no private Slurm: {reason}")
    with SlurmCluster(Settings(nodes=6, select="select/cons_tres", kinds=KINDS)) as cluster:
        yield cluster


def test_the_queue_tells_what_its_nodes_have(mixed: SlurmCluster) -> None:
    limits = SlurmQueue(env=mixed.env).limits()
    assert [(kind.shape, kind.count) for kind in limits.kinds] == [
        (THIN, 2),
        (GPU, 2),
        (FAT, 1),
        (ALL, 1),
    ]
    assert limits.shape == NodeShape(2, 1000 * MIB, 0, (("gpus", 0), ("gpus:a100", 0), ("lic", 0)))


def test_doctor_tells_what_each_kind_of_node_has(
    mixed: SlurmCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in mixed.env.items():
        monkeypatch.setenv(name, value)
    queue = next(examine("slurm"))
    said = "; ".join(f"{n} of {shape}" for shape, n in ((THIN, 2), (GPU, 2), (FAT, 1), (ALL, 1)))
    assert queue.said.startswith(f"6 nodes: {said}, ")


@pytest.mark.parametrize("case", CASES if IS_FULL else CASES[:2], ids=str)
def test_tasks_get_what_they_need(case: Case, mixed: SlurmCluster, tmp_path: Path) -> None:
    (tmp_path / "windrow.toml").write_text('[queues.slurm]\nshare = "nodes"\n')
    run(case, tmp_path, "slurm", {**mixed.env, **private(tmp_path)}, SHAPES)
    mixed.wait(mixed.is_free, "an empty queue after the run", "slurmctld", timeout_s=20.0)
