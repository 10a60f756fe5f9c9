"""Nodes that share data, seen by other users of the machine: what they can read, which ports are
open, and when.

The agent runs as an ordinary user, and another one looks.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.examples import some
from tests.other_user import NOBODY, as_nobody, python_for_all, python_path
from tests.unit.agent.jobs import Run, shell
from tests.unit.agent.test_nodes import cluster  # noqa: F401  (a fixture)
from tests.unit.agent.test_sharing import SIZE, work  # noqa: F401  (a fixture)
from tests.waiting import wait_until

OTHER = 65533
LISTENS = "0A"


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder that all users can reach: what protects data is their own."""
    with tempfile.TemporaryDirectory(prefix="windrow-nobody-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def doors(processes: set[int]) -> set[tuple[str, int]]:
    """Addresses and ports at which these processes listen."""
    held: set[str] = set()
    for pid in processes:
        held |= open_files(pid)
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[3] == LISTENS and f"socket:[{words[9]}]" in held:
            host, port = words[1].split(":")
            found.add(
                (".".join(str(byte) for byte in reversed(bytes.fromhex(host))), int(port, 16))
            )
    for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]:
        words = line.split()
        assert not (words[3] == LISTENS and f"socket:[{words[9]}]" in held), (
            "all of this is by IPv4"
        )
    return found


def open_files(pid: int) -> set[str]:
    """What a process has open: nothing if it ends while we look."""
    found: set[str] = set()
    with suppress(FileNotFoundError, ProcessLookupError):
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):
                found.add(str(descriptor.readlink()))
    return found


def below(pid: int) -> set[int]:
    """A process and all that it started: itself alone if it ends while we look."""
    kids: list[str] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        kids = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return {pid}.union(*(below(int(kid)) for kid in kids))


def command_lines() -> str:
    """Of all processes, as everybody can read them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_text())
        except OSError:  # it has ended
            continue
    return "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("share", some("peer", ""))
def test_other_users_read_nothing_and_ports_are_open_only_while_data_are_shared(
    cluster: Run,  # noqa: F811
    work: Path,  # noqa: F811
    share: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    top, go, is_root = work.parent, work.parent / "go", os.geteuid() == 0
    command = f"cksum < genome > out$N; touch {top}/at$N; while ! test -e {go}; do sleep 0.1; done"
    tasks = [
        shell(
            n,
            command,
            workdir=str(work),
            env={"N": str(n)},
            inputs=("genome",),
            outputs=(f"out{n}",),
            cores=2,
        )
        for n in range(3)
    ]
    cluster.write(*tasks, nodes=3, scratch=str(top / "disk"), share=share)
    if is_root:
        monkeypatch.setattr(
            sys, "executable", python_for_all(cluster.extra_env, "windrow.agent.loop")
        )
        cluster.extra_env |= {**python_path(), "HOME": str(top)}
        subprocess.run(["chown", "-R", NOBODY, str(top)], check=True)
    with cluster.begin(prefix=tuple(as_nobody()) if is_root else ()) as agent:
        try:
            wait_until(lambda: all((top / f"at{n}").exists() for n in range(3)))
            open_doors = doors(below(agent.pid))
            if share:
                look_around(cluster, top, agent.pid)
        finally:
            go.touch()
        printed = "".join(agent.communicate(timeout=60))
    assert agent.returncode == 0
    if not share:
        assert (open_doors, printed) == (set(), "")
        return
    assert [host for host, _ in open_doors] == ["127.0.0.1"] * 3, (
        "one of each node, on the network that they share"
    )
    assert (cluster.folder.path / "peer-key").read_text().strip() not in printed
    listening = Path("/proc/net/tcp").read_text()
    assert not [
        port
        for _, port in open_doors
        if re.search(f":{port:04X} 00000000:0000 {LISTENS} ", listening)
    ]
    assert list((top / "disk").iterdir()) == []


def look_around(run: Run, top: Path, agent: int) -> None:
    """What can be seen while data are shared: the key nowhere, and nothing of the data by another
    user."""
    key = (run.folder.path / "peer-key").read_text().strip()
    assert len(key) == 64
    assert key not in command_lines()
    for pid in below(agent):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
            assert key.encode() not in Path(f"/proc/{pid}/environ").read_bytes()
    kept = [path for path in (top / "disk").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in kept) >= SIZE
    if os.geteuid() == 0:
        assert {path.owner() for path in kept} == {NOBODY}
        look = ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", "--clear-groups", "cat"]
        done = subprocess.run(
            [*look, *kept, run.folder.path / "peer-key"], capture_output=True, check=False
        )
        assert done.stdout == b""
        assert len(re.findall(b"Permission denied", done.stderr)) == len(kept) + 1
