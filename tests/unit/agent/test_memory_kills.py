"""Whether the kernel killed for want of memory, as control groups of both versions tell it."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.agent.machine import MemoryKills


@pytest.mark.parametrize(
    ("group", "file", "text"),
    [
        ("0::/job_7/step", "job_7/step/memory.events", "low 0\nmax 12\noom {0}\noom_kill {0}\n"),
        (
            "9:cpu:/x\n4:memory:/job_7",
            "memory/job_7/memory.oom_control",
            "under_oom 0\noom_kill {0}\n",
        ),
    ],
)
def test_new_kills_are_told_once(tmp_path: Path, group: str, file: str, text: str) -> None:
    (tmp_path / "cgroup").write_text(group + "\n")
    counter = tmp_path / file
    counter.parent.mkdir(parents=True)
    counter.write_text(text.format(2))
    kills = MemoryKills(tmp_path / "cgroup", tmp_path)
    assert not kills.is_new()
    counter.write_text(text.format(3))
    assert [kills.is_new(), kills.is_new()] == [True, False]
    counter.unlink()
    assert not kills.is_new()


def test_nothing_is_claimed_without_a_group(tmp_path: Path) -> None:
    assert not MemoryKills(tmp_path / "none", tmp_path).is_new()
    (tmp_path / "cgroup").write_text("0::/\n")
    assert not MemoryKills(tmp_path / "cgroup", tmp_path).is_new()
