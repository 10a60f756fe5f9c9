"""The agent as one file: the same bytes each time, on every Python from 3.9 on."""

from __future__ import annotations

import ast
import base64
import json
import os
import subprocess
import zipfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from tests.unit.agent.jobs import Run, shell

from windrow.agent.travel import archive


def pythons() -> Iterator[tuple[tuple[int, int], str]]:
    """The Pythons of this machine, by version."""
    places = [Path("/usr/bin"), Path("/usr/local/bin"), *Path.home().glob(".pyenv/versions/*/bin")]
    for file in sorted(file for place in places for file in place.glob("python3.*")):
        minor = file.name.removeprefix("python3.")
        if minor.isdecimal():
            yield (3, int(minor)), str(file)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    name, content = archive()
    path = tmp_path_factory.mktemp("agent") / name
    path.write_bytes(content)
    return path


def test_every_module_is_python_3_9() -> None:
    archive.cache_clear()
    first = archive()
    archive.cache_clear()
    assert first == archive()
    with zipfile.ZipFile(BytesIO(first[1])) as parts:
        for name in parts.namelist():
            tree = ast.parse(parts.read(name), name, feature_version=(3, 9))
            assert not [node for node in ast.walk(tree) if isinstance(node, ast.Match)], name


@pytest.mark.slow
@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_it_does_a_job_and_fetches_what_it_wrote(which: str, file: Path, run: Run) -> None:
    found = {version: path for version, path in pythons() if version >= (3, 9)}
    if which == "oldest" and (3, 9) not in found:
        pytest.skip("no Python 3.9 here")
    python = found[min(found) if which == "oldest" else max(found)]
    run.write(shell(0, "echo hello > made", workdir=str(run.path.parent), outputs=("made",), children=(1,)),  # noqa: E501
              shell(1, "cat made", workdir=str(run.path.parent), parents=(0,)))  # fmt: skip
    env = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    command = [python, "-I", str(file)]
    done = subprocess.run(
        [*command, "__main__", run.path, "0"], env=env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert run.finished() == [0, 1]
    subprocess.run(
        [*command, "data.peers"], env=env, check=True
    )  # it can be loaded; it has no command of its own
    known = {"jobs/0/events": 10}
    request = {"put": {"jobs/1/over": ""}, "jobs": [0], "known": known, "all": True}
    answer = subprocess.run(
        [*command, "porter", run.path],
        input=json.dumps(request),
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    sent = {
        name: (begin, base64.b64decode(data))
        for name, begin, data in json.loads(answer.stdout)["files"]
    }
    assert sent["jobs/0/events"] == (10, run.folder.events(0).read_bytes()[10:])
    assert sent["out/1.1"] == (0, b"hello\n")
    assert run.folder.over(1).exists()


@pytest.mark.slow
def test_an_older_python_is_refused_in_one_sentence(file: Path) -> None:
    old = [path for version, path in pythons() if version < (3, 9)]
    if not old:
        pytest.skip("no Python before 3.9 here")
    done = subprocess.run(
        [old[0], "-I", file, "__main__"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "agents need 3.9 or newer" in done.stderr
    assert done.stderr.count("\n") == 1
