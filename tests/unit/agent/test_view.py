"""What tasks see where a node has a disk of its own; as root and as an ordinary user, with and
without namespaces."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from windrow.agent.data.carrier import Carrier, Copied, copied

# In a process of its own: a holder is forked, and the process may be another user's.
TRY = """
import ctypes, os, subprocess, sys
from windrow.agent.data import view
root, folder, kind, user = sys.argv[1:5]
if user != "None":
    os.setgroups([]), os.setgid(int(user)), os.setuid(int(user))
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as if this user had started it
seen = view.NodeView(root, folder, f"{root}/.windrow", is_plain=kind == "links")
seen.ready([f"{root}/sub/out.txt", f"{root}/data/in.txt"])
script = "cat data/in.txt plain > sub/out.txt; echo more >> sub/out.txt; echo x > .windrow/told; id -u >> sub/out.txt"
os.chdir(seen.inside(root))
code = subprocess.run([*seen.entering(root), "sh", "-c", script]).returncode
made = open(seen.inside(f"{root}/sub/out.txt")).read()
print("overlay" if seen.holder else "links", code, os.path.exists(f"{root}/sub/out.txt"), repr(made))
print(seen.inside("/etc/passwd"), seen.covers(f"{root}/x"), seen.covers("/etc"), seen.can_run([f"cat {root}/x"]))
seen.close()
"""  # noqa: E501
USER = 65534


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that any user may enter; those of pytest are its own user's."""
    path = Path(tempfile.mkdtemp(prefix="windrow-view-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def seen_by(place: Path, kind: str, user: int | None) -> list[str]:
    root = place / "root"
    for folder in (root / "data", root / ".windrow", root / "sub", place / "scratch"):
        folder.mkdir(parents=True)
    (root / "data" / "in.txt").write_text("in\n")
    (root / "plain").write_text("plain\n")
    if user is not None:
        for path in (place, *place.rglob("*")):
            os.chown(path, user, user)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "HOME": "/"}
    command = [sys.executable, "-c", TRY, str(root), str(place / "scratch"), kind, str(user)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    assert (root / ".windrow" / "told").read_text() == "x\n"  # the run's own folder is as it is
    assert not any((root / "sub").iterdir())  # what tasks write is not
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["overlay", "links"])
@pytest.mark.parametrize("user", [None, USER])
def test_what_a_task_writes_stays_on_its_node_and_names_are_as_ever(
    place: Path, kind: str, user: int | None
) -> None:
    if user is not None and os.geteuid() != 0:
        pytest.skip("only root can be another user")
    uid = os.geteuid() if user is None else user
    first, second = seen_by(place, kind, user)
    name, text = first.split(" ", 1)
    if kind == "overlay" and name == "links":
        pytest.skip("this kernel allows no overlay in a namespace")
    assert text == f"0 False {f'in{chr(10)}plain{chr(10)}more{chr(10)}{uid}{chr(10)}'!r}"
    assert name == kind
    assert second == f"/etc/passwd True False {kind == 'overlay'}"
    leftover = "links" if kind == "links" else "upper"
    assert (place / "scratch" / leftover / "sub" / "out.txt").exists()


def test_a_copy_comes_into_place_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "a" / "deep").mkdir(parents=True)
    (tmp_path / "a" / "deep" / "one").write_text("1")
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    files = [
        (str(tmp_path / "a"), str(tmp_path / ".windrow-b" / "a")),
        (str(tmp_path / "tool"), str(tmp_path / ".windrow-b" / "tool")),
    ]
    answer = copied(files)
    assert (answer.why, answer.size_bytes) == ("", 11)
    assert (tmp_path / ".windrow-b" / "a" / "deep" / "one").read_text() == "1"
    assert os.access(tmp_path / ".windrow-b" / "tool", os.X_OK)
    assert copied(files).why == ""  # again, over what is there
    missing = copied([*files, (str(tmp_path / "none"), str(tmp_path / ".windrow-b" / "none"))])
    assert missing.errno == 2
    assert "none: No such file" in missing.why
    assert sorted(path.name for path in (tmp_path / ".windrow-b").iterdir()) == ["a", "tool"]


@pytest.mark.slow
def test_the_carrier_is_a_process_that_answers_and_whose_end_fails_what_was_asked(
    tmp_path: Path,
) -> None:
    (tmp_path / "in").write_text("1234")
    carrier, heard = Carrier(), list[Copied]()
    carrier.copy([(str(tmp_path / "in"), str(tmp_path / "out"))], heard.append)
    while not carrier.is_idle:
        select.select([carrier.fd], [], [], 10)
        carrier.collect()
    assert (heard[0].why, heard[0].size_bytes, (tmp_path / "out").read_text()) == ("", 4, "1234")
    carrier.close()
    carrier.copy([(str(tmp_path / "in"), str(tmp_path / "late"))], heard.append)
    while not carrier.is_idle:
        select.select([carrier.fd], [], [], 10)
        carrier.collect()
    assert "has ended" in heard[1].why
