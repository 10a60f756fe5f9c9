"""Numbers, times and names from the command line: each has a range, and what lies outside is
refused by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from windrow.cli.arguments import number, seed, size_bytes, some_time_s, whole
from windrow.cli.main import main
from windrow.errors import printable


@pytest.mark.parametrize("text", ["1", "1000", " 7 ", "+3", "1000000"])
def test_whole_numbers_in_range(text: str) -> None:
    assert whole(1, 10**6)(text) == int(text)


@pytest.mark.parametrize(
    "text", ["0", "-1", "1000001", "9" * 5000, "1e3", "1_0", "٣", "", "nan", "2147483648"]
)
def test_whole_numbers_out_of_range(text: str) -> None:
    with pytest.raises(Exception, match=r"is not a whole number from 1 to 1,000,000$"):
        whole(1, 10**6)(text)


@pytest.mark.parametrize("text", ["nan", "inf", "1e300", "-0.1", "1.1", "x", ""])
def test_numbers_out_of_range(text: str) -> None:
    with pytest.raises(Exception, match=r"is not a share from 0 to 1$"):
        number(0, 1, what="a share")(text)


def test_numbers_in_range() -> None:
    assert number(0, 1)("0") == 0
    assert seed(str(2**63 - 1)) == 2**63 - 1
    assert some_time_s("1.5m") == 90
    assert size_bytes("8192TiB") == 2**53


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "simulate l.swf --nodes 10000001",
            "argument --nodes: '10000001' is not a whole number from 1 to 10,000,000",
        ),
        (
            "simulate l.swf --cap 2147483648",
            "argument --cap: '2147483648' is not a whole number from 1 to 1,000,000",
        ),
        (
            "generate montage --tasks 2147483648 -o m.json",
            "argument --tasks: '2147483648' is not a whole number",
        ),
        (
            "generate montage --work 1e18h -o m.json",
            "argument --work: '1e18h' is too long; a time is at most 11,574d",
        ),
        (
            "stream --utilization=1e-300",
            "argument --utilization: '1e-300' is not a utilization from 0.001 to 2",
        ),
        ("run w.yaml --deadline 0", "argument --deadline: '0' is not a time from 1s"),
        ("run w.yaml --guess 0", "argument --guess: '0' is not a time from 1s"),
        (
            "run w.yaml --risk nan",
            "argument --risk: 'nan' is not a probability from 0.001 to 0.999",
        ),
        (
            "run w.yaml --think 100000000000",
            "argument --think: '100000000000' is not a whole number from 1 to 1,000",
        ),
        (
            "simulate l.swf --priority wait=1,wait=2",
            "priority 'wait=1,wait=2': wait is given twice",
        ),
        (
            "simulate l.swf --priority wait^-1=3",
            "priority 'wait^-1=3': the cap of wait must be above zero",
        ),
        ("simulate l.swf --priority fl --priority fs", "--priority is given twice; keep one"),
        ("simulate l.swf --cap=--", "argument --cap: expected one argument"),
        ("status --pool " + "x" * 300, "cannot be the name of a file or folder"),
        ("reproduce glume --data " + "x" * 5000, "cannot be the name of a file or folder"),
    ],
)
def test_values_out_of_range_are_refused_with_the_option(
    command: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command.split()) == 2
    assert words in capsys.readouterr().err


def test_several_policies_are_no_repetition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "l.swf").write_text(
        "; MaxNodes: 4\n1 0 -1 5 2 -1 -1 2 9 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    )
    assert main(["simulate", "l.swf", "--policy", "fcfs", "--policy", "easy"]) == 0


@pytest.mark.slow
def test_a_full_disk_is_told_without_a_traceback() -> None:
    command = [sys.executable, "-m", "windrow.cli.main", "generate", "list"]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "windrow: error: the output cannot be written: No space left on device\n"


def test_what_steers_a_terminal_is_shown_as_escapes() -> None:
    assert printable("a\x1b[31m\u202eb\r\x9b\n\tc") == "a\\x1b[31m\\u202eb\\r\\x9b\n\tc"


def test_an_error_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "a\x1b]0;b\x07.json"]) == 2
    assert "a\\x1b]0;b\\x07.json: no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "nosuch.json", "--html", "no/such.html"],
        ["plan", "nosuch.json", "-o", "no/such.html"],
        ["simulate", "nosuch.swf", "--html", "no/such.html"],
        ["simulate", "nosuch.swf", "--jobs-out", "no/such.csv"],
        ["show", "nosuch.json", "--html", "no/such.html"],
        ["generate", "nosuch", "-o", "no/such.json"],
        ["profile", "--parquet", "no/such.parquet", "--", "true"],
        ["report", "--crate", "file/such"],
        ["stream", "--html", "no/such.html"],
        ["lab", "nosuch.toml", "--out", "file/such"],
        ["reproduce", "glume", "--out", "file/such"],
    ],
)
def test_what_cannot_be_written_is_refused_before_the_work(
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of other mistakes, which come to light when it begins, nothing is said yet."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "there is no folder" in said
    assert said.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
