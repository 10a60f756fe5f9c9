"""Which GPUs a node's environment names, and what a task is shown of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from windrow.agent.job_file import JobFile, TaskSpec, read_job, write_job
from windrow.agent.machine import SHOWN_BY, Identity, shown, visible
from windrow.agent.order import order_for
from windrow.agent.shares import Share, deal
from windrow.model.nodes import Need
from windrow.model.resources import NodeShape


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({}, None),
        ({"CUDA_VISIBLE_DEVICES": "2,GPU-5a"}, ["2", "GPU-5a"]),
        ({"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, []),
        ({"CUDA_VISIBLE_DEVICES": "-1", "SLURM_STEP_GPUS": "3"}, []),
        ({"SLURM_JOB_GPUS": "0,1", "SLURM_STEP_GPUS": "1"}, ["1"]),
        ({"GPU_DEVICE_ORDINAL": "4, 5"}, ["4", "5"]),
    ],
)
def test_visible(environ: dict[str, str], names: list[str] | None) -> None:
    assert visible(environ) == names


def test_shown_are_names_of_the_node() -> None:
    assert set(shown({"CUDA_VISIBLE_DEVICES": "4,7"}, [1]).values()) == {"7"}
    own = shown({"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b", "ZE_AFFINITY_MASK": "0,1"}, [0, 1])
    assert own == dict(zip(SHOWN_BY, ("GPU-a,GPU-b", "GPU-a,GPU-b", "0,1"), strict=True))
    assert set(shown({}, [2]).values()) == {"2"}
    assert set(shown({"CUDA_VISIBLE_DEVICES": "0"}, ()).values()) == {""}


def spec(**needs: object) -> TaskSpec:
    return TaskSpec(0, "t", "t", ("true",), "/", {}, **needs)  # type: ignore[arg-type]


def test_variables_of_a_task() -> None:
    node = NodeShape(8, None, None, (("gpus", 4), ("lic", 2)))

    def env(gpus: tuple[int, ...] | None, **needs: object) -> dict[str, str]:
        order = order_for(
            spec(**needs),
            1,
            run="r",
            out=Path("o"),
            hosts=["h"],
            node=node,
            patience_s=0,
            gpus=gpus,
        )
        return {k: v for k, v in order.env.items() if k.endswith(("GPUS", "BYTES", "LIC", "CORES"))}

    assert env(None) == {"WINDROW_CORES": "1"}
    assert env(()) == {"WINDROW_CORES": "1", "WINDROW_GPUS": "0"}
    some = {
        "WINDROW_CORES": "2",
        "WINDROW_GPUS": "1",
        "WINDROW_RESOURCE_LIC": "2",
        "WINDROW_DISK_BYTES": "9",
    }
    assert env((3,), cores=2, disk_bytes=9, counts=(("gpus", 1), ("lic", 2))) == some
    whole = {
        "WINDROW_CORES": "8",
        "WINDROW_GPUS": "4",
        "WINDROW_RESOURCE_LIC": "2",
        "WINDROW_MEMORY_BYTES": "7",
    }
    assert env(None, nodes=1, memory_bytes=7, counts=(("gpus", 1),)) == whole


def test_a_job_file_without_them_is_as_it_was(tmp_path: Path) -> None:
    for disk, counts in ((None, ()), (0, ()), (5, (("gpus", 0),))):
        task = spec(disk_bytes=disk or 0, counts=tuple((name, 1) for name, _ in counts))
        job = JobFile("r", 0, 1, 4, None, 9.0, (task,), disk_bytes=disk, counts=counts)
        write_job(tmp_path / "job.json", job)
        assert read_job(tmp_path / "job.json") == job
        written = json.loads((tmp_path / "job.json").read_text())
        assert ("disk_bytes" in written, "counts" in written) == (disk is not None, bool(counts))
        assert ("disk_bytes" in written["tasks"][0], "counts" in written["tasks"][0]) == (
            bool(disk),
            bool(counts),
        )


def test_who_waits_for_a_gpu_keeps_no_cores_from_others() -> None:
    """The GPU is kept for the one who has less, and the other starts what needs none."""
    total, gpu = Need(4, 100, 0, 0, (("gpus", 1),)), (("gpus", 1),)
    busy = Share(Identity(1, 1), Need(1, 0, 0, 0, gpu), Need(1), 9, 2.0)
    waiting = Share(Identity(2, 1), Need(0), Need(1, 0, 0, 0, gpu), 9, 1.0)
    dealt, kept_for = deal(total, [busy, waiting])
    assert (dealt[0].cores, dealt[1], kept_for) == (3, Need(0, 0, 0, 0, ()), None)
    dealt, _ = deal(total, [Share(Identity(1, 1), Need(1), Need(1, 0, 0, 0, gpu), 9, 2.0), waiting])
    assert [dict(need.counts).get("gpus", 0) for need in dealt] == [0, 1]
