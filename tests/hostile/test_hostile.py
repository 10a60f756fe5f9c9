"""Whatever is given to Windrow, it answers: no traceback, no hang, no success where it failed, nothing half-made left.

Each case is one command line in this process, under a watchdog. `WINDROW_FUZZ_SEED` replays a run (the seed is in every
failure), `WINDROW_FUZZ_CASES` says how many cases; by default about one for each kind, the same each time.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from tests.hostile.kinds import Kind, kinds

from windrow.cli.main import main
from windrow.errors import STEERING

SEED = int(os.environ.get("WINDROW_FUZZ_SEED", "1"))
CASES = int(os.environ.get("WINDROW_FUZZ_CASES", "0"))
PATIENCE_S = 300  # kernels may have to be compiled meanwhile, on a busy machine
KINDS = kinds()
EACH = max(1, -(-CASES // len(KINDS)))

OK = "name: ok\ntasks:\n  - {id: a, command: 'true', runtime: 1s}\n"


class Hang(BaseException):
    """The watchdog's: nothing in Windrow catches it."""


@contextmanager
def watchdog() -> Iterator[None]:
    """Ends the body after some minutes; the whole process, with all stacks, where it sits in compiled code."""

    def bark(_number: int, _frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, bark)
    signal.alarm(PATIENCE_S)
    faulthandler.dump_traceback_later(4 * PATIENCE_S, exit=True, file=2)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Good files that bad ones are made from."""
    folder = tmp_path_factory.mktemp("good")
    assert main(["generate", "montage", "--tasks", "20", "-o", str(folder / "m.json")]) == 0
    assert main(["generate", "log", "--jobs", "60", "--nodes", "64", "-o", str(folder / "l.swf")]) == 0
    assert main(["grid", "generate", "many-cluster", "-o", str(folder / "g.toml")]) == 0
    (folder / "ok.yaml").write_text(OK)
    (folder / "campaign.toml").write_text('submit = ["1h"]\nlogs = "l.swf"\nworkflows = "m.json"\n')
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def left_by(folder: Path) -> set[str]:
    """All that is in the folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_there_are_enough_kinds() -> None:
    assert len(KINDS) >= 40
    assert len({kind.name for kind in KINDS}) == len(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_bad_input_is_answered(
    kind: Kind,
    files: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("STATE", "DATA", "CONFIG"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / "home"))
    for number in range(EACH):
        draw = random.Random(f"{SEED} {kind.name} {number}")
        folder = tmp_path / f"case-{number}"
        folder.mkdir()
        for name, content in files.items():
            (folder / name).write_bytes(content)
        monkeypatch.chdir(folder)
        case = kind.make(draw, folder)
        before = left_by(folder)
        words = f"seed {SEED}, case {number}: windrow {' '.join(case.argv)[:300]!r}"
        try:
            with watchdog():
                code = main(list(case.argv))
        except Hang:
            pytest.fail(f"{words} hangs")
        except SystemExit as error:
            code = int(error.code or 0)
        except Exception as error:
            error.add_note(words)
            raise
        told = capsys.readouterr()
        said = [line for line in told.err.splitlines() if line.startswith("windrow: error:")]
        assert code in ((2,) if case.is_bad else (0, 2)), f"{words}: exit code {code}\n{told.err[-500:]}"
        assert len(said) == (code == 2), f"{words}: exit code {code}\n{told.err[-500:]}"
        assert not STEERING.search(told.err.replace("\n", "")), words
        if code == 2:
            assert left_by(folder) == before, words
