"""What this machine offers: within the quotas and limits of control groups, of either version."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from windrow.agent.machine import Identity, identity, this_machine

REAL_MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.mark.parametrize(
    ("files", "cores", "memory"),
    [
        ({}, 8, REAL_MEMORY),
        (
            {"a/b/cpu.max": "150000 100000\n", "a/memory.max": "1000000\n"},
            2,
            10**6,
        ),  # a group above counts, too
        ({"a/b/cpu.max": "max 100000\n", "memory.max": "max\n"}, 8, REAL_MEMORY),
        (
            {"cpu.max": "50000 100000\n", "memory.max": "7\n"},
            1,
            7,
        ),  # a container's own group shown as the root
        (
            {
                "cpu,cpuacct/b/cpu.cfs_quota_us": "300000\n",
                "cpu,cpuacct/b/cpu.cfs_period_us": "100000\n",
            },
            3,
            REAL_MEMORY,
        ),
        (
            {
                "cpu,cpuacct/b/cpu.cfs_quota_us": "-1\n",
                "cpu,cpuacct/b/cpu.cfs_period_us": "100000\n",
            },
            8,
            REAL_MEMORY,
        ),
        ({"memory/b/memory.limit_in_bytes": "2000000\n"}, 8, 2 * 10**6),
        ({"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 8, REAL_MEMORY),
        ({"memory/b/memory.limit_in_bytes": "no number\n", "cpu.max": ""}, 8, REAL_MEMORY),
    ],
)
def test_control_groups_are_respected(
    tmp_path: Path, files: dict[str, str], cores: int, memory: int
) -> None:
    for name, text in files.items():
        write(tmp_path / name, text)
    own = tmp_path / "own"
    own.write_text("4:memory:/b\n1:cpu,cpuacct:/b\n2:pids:/b\n0::/a/b\n")
    shape = this_machine(tmp_path, own)
    assert (shape.cores, shape.memory_bytes) == (cores, memory)


def test_without_control_groups(tmp_path: Path) -> None:
    shape = this_machine(tmp_path, tmp_path / "none")
    assert (shape.cores, shape.memory_bytes) == (8, REAL_MEMORY)


def test_a_process_is_told_by_number_and_start() -> None:
    me = identity(os.getpid())
    assert me is not None
    assert me == identity(os.getpid()) != Identity(me.pid, me.began_ticks + 1)
    assert identity(2**22 + 1) is None
