"""Whatever is given to Windrow, it answers: no traceback, no hang, no success where it failed,
nothing half-made left.

Each case is one command line in this process, under a watchdog. `WINDROW_FUZZ_SEED` replays a run
(the seed is in every failure), `WINDROW_FUZZ_CASES` says how many cases; by default about one for
each kind, the same each time.
"""

from __future__ import annotations

import faulthandler
import os
import random
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
from tests.hostile.case import Case, Kind
from tests.hostile.kinds import kinds
from tests.hostile.options import ANY_TEXT, OPTIONS, WORKFLOW
from tests.hostile.workflows import HACKED, MINE

from windrow.cli.completion import options_of
from windrow.cli.main import COMMANDS, main, parser_of
from windrow.errors import STEERING

SEED = int(os.environ.get("WINDROW_FUZZ_SEED", "1"))
CASES = int(os.environ.get("WINDROW_FUZZ_CASES", "0"))
PATIENCE_S = 300  # kernels may have to be compiled meanwhile, on a busy machine
KINDS = kinds()
WEIGHT = sum(kind.weight for kind in KINDS)
FEW = 30
"""By default one case for so many ways of being wrong."""

OK = "name: ok\ntasks:\n  - {id: a, command: 'true', runtime: 1s}\n"


class Hang(BaseException):
    """The watchdog's: nothing in Windrow catches it."""


@contextmanager
def watchdog() -> Iterator[None]:
    """Ends the body after some minutes; the whole process, with all stacks, where it sits in
    compiled code."""

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
    assert (
        main(["generate", "log", "--jobs", "60", "--nodes", "64", "-o", str(folder / "l.swf")]) == 0
    )
    assert main(["grid", "generate", "many-cluster", "-o", str(folder / "g.toml")]) == 0
    (folder / "ok.yaml").write_text(OK)
    (folder / "campaign.toml").write_text('submit = ["1h"]\nlogs = "l.swf"\nworkflows = "m.json"\n')
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def left_by(folder: Path) -> set[str]:
    """All that is in the folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def cases_of(kind: Kind) -> int:
    """How many are drawn."""
    return max(-(-kind.weight // FEW), -(-CASES * kind.weight // WEIGHT))


def user_files(folder: Path) -> dict[str, bytes | None]:
    """What only the user may change, and what no one may make."""
    names = (*MINE, HACKED, "ok.yaml", WORKFLOW, "g.toml")
    files = {name: folder / name for name in names}
    return {name: file.read_bytes() if file.exists() else None for name, file in files.items()}


def test_there_are_enough_kinds() -> None:
    assert len(KINDS) >= 180
    assert sum(kind.weight for kind in KINDS if kind.weight > 1) >= 764
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def test_every_option_that_takes_a_value_gets_bad_ones() -> None:
    given = {command: set[str]() for command in COMMANDS}
    for (command, *_), options in OPTIONS.items():
        given.setdefault(command, set()).update(options)
    of_all = given["status"] & {"--color"}
    missing = [
        (command, name)
        for command in COMMANDS
        for name, action in options_of(parser_of(command)).items()
        if action.nargs != 0
        and not {*action.option_strings} & (given[command] | of_all)
        and (command, action.option_strings[-1]) not in ANY_TEXT
    ]
    assert missing == []


def set_up(folder: Path, files: dict[str, bytes]) -> None:
    """A project of the user's, with a link out of it."""
    (folder / "sub").mkdir(parents=True)
    (folder.parent / "outside").mkdir()
    (folder / "out").symlink_to("../outside")
    for name in MINE:
        (folder / name).write_text("mine")
    for name, content in files.items():
        (folder / name).write_bytes(content)


def drawn(folder: Path, files: dict[str, bytes]) -> list[Path]:
    """The files that were made for a case."""
    return [
        path for path in folder.iterdir() if path.is_file() and path.name not in (*files, *MINE)
    ]


def exit_code(case: Case) -> int:
    """Of its command line, within some minutes."""
    with watchdog():
        try:
            return main(list(case.argv))
        except SystemExit as error:
            return int(error.code or 0)


def wrong_with(case: Case, folder: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """All that is wrong with how the case is answered, in words."""
    before = left_by(folder)
    users = user_files(folder)
    try:
        code = exit_code(case)
    except Hang:
        return ["it hangs"]
    except Exception:  # noqa: BLE001  (whatever it is)
        return [f"a traceback\n{traceback.format_exc()[-3000:]}"]
    told = capsys.readouterr()
    said = [line for line in told.err.splitlines() if line.startswith("windrow: error:")]
    found = {
        f"exit code {code}, not one of {case.allowed}": code not in case.allowed,
        "damage": user_files(folder) != users,
        f"{len(said)} messages": len(said) != (code == 2),
        "it steers the terminal": STEERING.search(told.err.replace("\n", "")) is not None,
        "it leaves something": code == 2 and left_by(folder) != before,
    }
    return [f"{words}\n{told.err[-600:]}" for words, is_wrong in found.items() if is_wrong]


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
    found = []
    for number in range(cases_of(kind)):
        draw = random.Random(f"{SEED} {kind.name} {number}")
        folder = tmp_path / f"case-{number}" / "project"
        set_up(folder, files)
        monkeypatch.chdir(folder)
        case = kind.make(draw, folder)
        words = f"seed {SEED}, case {number}: windrow {' '.join(case.argv)[:300]!r}"
        words += "".join(
            f", {path.name} {path.read_bytes()[:300]!r}" for path in drawn(folder, files)
        )
        found += [f"{words}: {wrong}" for wrong in wrong_with(case, folder, capsys)]
    assert not found, "\n\n".join(found)
