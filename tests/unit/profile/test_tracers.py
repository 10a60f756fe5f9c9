"""A program that is known to the byte, traced for true: by strace and by the listener, as root and
as another user."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.examples import some

from windrow.model.trace import Stage
from windrow.profile import tracers
from windrow.profile.measures import Measures
from windrow.profile.roles import infer
from windrow.profile.tracers import Tracing, listener_fault, strace_options

KNOWN = Path(__file__).with_name("known.py")

# Bytes read, written, unique and static; operations by kind; role and direction.
EXPECTED: dict[str, tuple[int, int, int, int, dict[str, int], str, str]] = {
    "out": (
        100,
        3000,
        3000,
        3000,
        {"open": 1, "dup": 1, "close": 2, "read": 1, "write": 3, "seek": 1},
        "pipeline",
        "rw",
    ),
    "data": (
        4000 + 4000 + 5000 + 6000 + 500,
        0,
        9096,
        10_000,
        {"open": 1, "read": 5, "dup": 1, "close": 1, "stat": 1},
        "endpoint",
        "r",
    ),
    "copy": (
        0,
        6510,
        6510,
        6510,
        {"open": 2, "close": 2, "write": 3, "stat": 1, "other": 1},
        "endpoint",
        "w",
    ),
    "temporary": (
        0,
        800,
        800,
        800,
        {"open": 1, "close": 1, "write": 1, "other": 2},
        "pipeline",
        "w",
    ),
    "changed": (0, 5, 5, 50, {"open": 1, "close": 1, "write": 1}, "endpoint", "rw"),
    "both": (30, 0, 30, 40, {"open": 1, "close": 1, "read": 1}, "endpoint", "r"),
}


def trace_known(folder: Path, detail: str) -> dict[str, Any]:
    """What tracing the program tells of the files in its folder."""
    for name, size in (("data", 10_000), ("changed", 50), ("both", 40)):
        (folder / name).write_bytes(b"." * size)
    time.sleep(0.05)  # created before
    tracing = Tracing(detail)
    command = (sys.executable, "-I", "-S", "-B", str(KNOWN), str(folder))
    stage = tracing.run(Stage("known", command=command), str(folder), stdout=subprocess.DEVNULL)
    trace = tracing.trace()
    measures = Measures(trace)
    roles = infer(measures, str(folder))
    files: dict[str, Any] = {}
    for number in sorted(roles.of):
        path = Path(trace.files.paths[number])
        if path.parent == folder:
            uses = measures.file == number
            read, written = (
                measures.amount(uses & ~measures.is_write),
                measures.amount(uses & measures.is_write),
            )
            both = measures.amount(uses)
            way = "r" * bool(read.files) + "w" * bool(written.files)
            figures = [read.traffic, written.traffic, both.unique, both.static]
            files[path.name] = [*figures, measures.by_file[number], roles.of[number], way]
    return {
        "code": stage.exit_code,
        "files": files,
        "warnings": roles.warnings,
        "apart": tracing.reading.apart_bytes,
    }


def as_user(user: str, folder: Path) -> dict[str, Any]:
    """The same in a process of another user, for both ways to trace."""
    prefix = ["setpriv", f"--reuid={user}", "--regid=nogroup", "--clear-groups", "--", "env"]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, sys.path)]),
    }
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder.chmod(0o777)
    for python in (sys.executable, f"/usr/bin/python{version}"):
        command = [*prefix, python, "-P", "-m", "tests.unit.profile.test_tracers", str(folder)]
        done = subprocess.run(
            command, env=env, cwd="/", capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            return dict(json.loads(done.stdout))
    return pytest.skip(f"no Python {version} that other users can start: {done.stderr[-300:]}")


def check_bytes(found: dict[str, Any]) -> None:
    assert found["code"] == 0
    for name, (read, written, unique, static, kinds, role, _) in EXPECTED.items():
        figures = found["files"][name]
        assert figures[:4] == [read, written, unique, static], name
        assert figures[4] == kinds, name
        assert figures[5] == role, name
    assert [line.split(" was ")[0].rpartition("/")[2] for line in found["warnings"]] == ["changed"]


def check_files(found: dict[str, Any]) -> None:
    assert found["code"] == 0
    for name, (_, _, _, static, _, role, way) in EXPECTED.items():
        size, _, role_found, way_found = found["files"][name][3:]
        # A file that is deleted is seen as it is then; one that is written and read by one
        # descriptor only as written.
        assert size == (100 if name == "temporary" else static), name
        assert (role_found, way_found) == ("endpoint" if name == "out" else role, way), name
    assert [line.split(" was ")[0].rpartition("/")[2] for line in found["warnings"]] == ["changed"]


needs_strace = pytest.mark.skipif(
    not strace_options(), reason="strace is not installed or not allowed: apt install strace"
)
needs_listener = pytest.mark.skipif(
    bool(listener_fault()), reason=f"no listening to calls here: {listener_fault()}"
)


@needs_strace
@pytest.mark.slow
def test_strace_tells_bytes_exactly(tmp_path: Path) -> None:
    found = trace_known(tmp_path, "bytes")
    check_bytes(found)
    assert found["apart"] == 5


@needs_strace
@pytest.mark.slow
@pytest.mark.parametrize("seed", some(*[[1, 2, 3], *([n] for n in range(4, 60))]), ids=str)
def test_random_programs_are_measured_to_the_byte(
    seed: list[int], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """They count for themselves what they do to each file."""
    program = Path(__file__).with_name("random_program.py")
    for each in seed:
        folder = tmp_path / str(each)
        folder.mkdir()
        tracing = Tracing("bytes")
        command = (sys.executable, "-I", "-S", "-B", str(program), str(each), str(folder))
        assert tracing.run(Stage("random", command=command), str(folder)).exit_code == 0
        expected = json.loads(capfd.readouterr().err)
        trace = tracing.trace()
        measures = Measures(trace)
        numbers = [n for n, path in enumerate(trace.files.paths) if path.startswith(f"{folder}/")]
        for number, (read, written, unique, static, kinds) in zip(numbers, expected, strict=True):
            uses = measures.file == number
            found = measures.amount(uses)
            ways = [
                measures.amount(uses & way).traffic
                for way in (~measures.is_write, measures.is_write)
            ]
            if found.files:  # else it was opened only
                assert [*ways, found.unique, found.static] == [read, written, unique, static], (
                    each,
                    number,
                )
            assert measures.by_file[number] == {kind: n for kind, n in kinds.items() if n}, (
                each,
                number,
            )


@needs_strace
@needs_listener
@pytest.mark.slow
@pytest.mark.parametrize("seed", some(*range(1, 40)))
def test_both_tell_the_same_files_of_random_programs(seed: int, tmp_path: Path) -> None:
    found = []
    for detail in tracers.DETAILS:
        folder = tmp_path / detail
        folder.mkdir()
        tracing = Tracing(detail)
        program = str(Path(__file__).with_name("random_program.py"))
        command = (sys.executable, "-I", "-S", "-B", program, str(seed), str(folder))
        tracing.run(Stage("random", command=command), str(folder))
        files = tracing.trace().files
        rows = zip(files.paths, files.made, files.gone, strict=True)
        found.append(
            [(Path(path).name, *more) for path, *more in rows if path.startswith(f"{folder}/")]
        )
    assert found[0] == found[1]


@needs_listener
@pytest.mark.slow
def test_the_listener_tells_files_ways_sizes_and_roles(tmp_path: Path) -> None:
    check_files(trace_known(tmp_path, "files"))


@needs_strace
@needs_listener
@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("setpriv"), reason="only root can become another user"
)
def test_both_work_for_an_ordinary_user() -> None:
    import tempfile

    with tempfile.TemporaryDirectory(prefix="windrow-profile-", dir="/tmp") as folder:
        found = as_user("nobody", Path(folder))
    check_bytes(found["bytes"])
    check_files(found["files"])


if __name__ == "__main__":
    told = {}
    for each in ("bytes", "files"):
        place = Path(sys.argv[1]) / each
        place.mkdir()
        told[each] = trace_known(place, each)
    print(json.dumps(told))
