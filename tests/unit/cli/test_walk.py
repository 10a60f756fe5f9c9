"""The walk in ARCHITECTURE.md, walked: what it names is what runs, in every process of a run; and
what a run looks at, it looks at once."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
OTHERS = {
    "strategies.glume.Glume.decide": r"strategies\.\w+:\w+\.decide",
    "queues.port.Queue.submit": r"queues\.[\w.]+:\w+\.submit",
}
"""What stands for several: some other strategy, some queue."""
TRACED = """\
import atexit, json, os, sys, threading
called, opened = {}, []
def note(frame, event, _):
    name = frame.f_globals.get("__name__") or ""
    if event == "call" and (name == "__main__" or name.startswith("windrow.")):
        if name == "__main__":
            name = getattr(frame.f_globals.get("__spec__"), "name", None) or name
        code = frame.f_code
        called.setdefault(name.removeprefix("windrow.") + ":" + code.co_qualname)
def hear(event, args):
    if event == "sqlite3.connect":
        opened.append(str(args[0]).partition("?")[0])
    if event == "open" and str(args[0]).endswith("windrow.toml"):
        opened.append(str(args[0]))
def tell():
    sys.setprofile(None)
    with open(os.path.join(os.environ["TOLD"], str(os.getpid())), "w") as file:
        json.dump([list(called), opened], file)
if "TOLD" in os.environ:
    atexit.register(tell)
    sys.addaudithook(hear)
    threading.setprofile(note)
    sys.setprofile(note)
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[str], list[str]]]:
    """What each process of a run and its report called and opened."""
    here = tmp_path_factory.mktemp("walk")
    for name in ("site", "told", "data"):
        (here / name).mkdir()
    (here / "site" / "sitecustomize.py").write_text(TRACED)
    (here / "windrow.toml").write_text("[sites.fast]\nqueue = 'local'\n")
    tasks = [f"  - {{id: s{n}, command: 'echo {n} > s{n}', outputs: [s{n}]}}" for n in range(8)]
    read = ", ".join(f"s{n}" for n in range(8))
    tasks.append(f"  - {{id: all, command: 'cat s? > all', inputs: [{read}], outputs: [all]}}")
    (here / "w.yaml").write_text("\n".join(["name: w", "tasks:", *tasks, ""]))
    env = os.environ | {
        "PYTHONPATH": str(here / "site"),
        "TOLD": str(here / "told"),
        **{f"XDG_{what}_HOME": str(here / "data") for what in ("DATA", "STATE", "CONFIG")},
    }
    for command in (["run", "w.yaml"], ["report"]):
        subprocess.run(
            [sys.executable, "-m", "windrow.cli.main", *command],
            cwd=here,
            env=env,
            check=True,
            capture_output=True,
            timeout=300,
        )
    return [json.loads(file.read_text()) for file in (here / "told").iterdir()]


def test_what_the_walk_names_is_called(told: list[tuple[list[str], list[str]]]) -> None:
    called = {name for names, _ in told for name in names}
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    walk = page.partition("## A newcomer's walk")[2].partition("\nIn simulation")[0]
    names = re.findall(r"`((?:[a-z_]+\.)+\w+(?:\.\w+)*)`", walk)
    assert len(names) > 25
    assert [name for name in names if not _is_called(name, called)] == []


def _is_called(name: str, called: set[str]) -> bool:
    if name in OTHERS:
        return any(re.fullmatch(OTHERS[name], one) for one in called)
    found = resolve_name(f"windrow.{name}")
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, ModuleType):
        return any(one.startswith(f"{name}:") for one in called)
    module = found.__module__.removeprefix("windrow.")
    if inspect.isclass(found):
        return any(one.startswith(f"{module}:{found.__qualname__}.") for one in called)
    return f"{module}:{found.__qualname__}" in called


def test_one_process_opens_each_database_and_the_settings_once(
    told: list[tuple[list[str], list[str]]],
) -> None:
    """The journal: made, then written; and read by what shows it, again when it is over."""
    opened = next(opened for names, opened in told if "app.execute:managed" in names)
    counts = Counter(Path(name).name for name in opened)
    assert counts.pop("journal.sqlite") <= 4
    assert {"history.sqlite", "waits.sqlite", "queue.sqlite", "windrow.toml"} <= counts.keys()
    assert set(counts.values()) == {1}, counts
