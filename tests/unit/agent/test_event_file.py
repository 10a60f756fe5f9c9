"""The events file: whole lines or nothing, whoever is killed when."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.agent.event_file import (
    AgentLeft,
    AgentStarted,
    AttemptFailed,
    AttemptFinished,
    AttemptLost,
    AttemptStarted,
    Record,
    Tail,
    TaskDeclined,
    Writer,
    decode,
    encode,
)
from windrow.errors import InputError, OutsideError
from windrow.model.attempt import Attempt, Leave, Leaving, Moved

_LEFT = Leaving(Leave.TROUBLE, "y")
times = st.floats(0, 2e9)
ints = st.integers(0, 2**40)
texts = st.text(max_size=30)
codes = st.none() | st.integers(0, 255)
names = st.lists(texts, max_size=3).map(tuple)
moved = st.lists(st.builds(Moved, texts, texts, ints), max_size=3).map(tuple)
started = st.builds(Attempt, ints, ints, nodes=st.lists(ints).map(tuple))
finished = st.builds(
    Attempt, ints, ints, cpu_s=times, peak_bytes=ints, begun=times, moved=moved, local=names
)
failed = st.builds(
    Attempt, ints, ints, codes, codes, texts, times, ints, tail=texts, cause=texts, moved=moved
)
records: st.SearchStrategy[Record] = st.one_of(
    st.builds(AgentStarted, times, texts, ints, texts, st.lists(texts).map(tuple)),
    st.builds(AttemptStarted, times, started),
    st.builds(AttemptFinished, times, finished),
    st.builds(AttemptFailed, times, failed, st.booleans()),
    st.builds(TaskDeclined, times, ints, texts),
    st.builds(AttemptLost, times, ints, texts),
    st.builds(AgentLeft, times, st.builds(Leaving, st.sampled_from(Leave), texts)),
)


@pytest.mark.slow
@given(records)
def test_a_record_is_one_line_and_comes_back(record: Record) -> None:
    line = encode(record)
    assert line.count("\n") == 1
    assert line.isascii()
    assert decode(line.encode()) == record


LINES = """\
{"at":1.5,"what":"job-started","host":"n1","pid":7,"queue_id":"12","hosts":["n1","n2"],"by_job":null}
{"at":2.0,"what":"task-started","task":0,"number":1,"nodes":[0,1]}
{"at":3.0,"what":"task-finished","task":0,"number":1,"cpu_s":0.5,"peak_bytes":9,"begun":2.0}
{"at":3.0,"what":"task-failed","final":true,"task":1,"number":1,"exit":1,\
"why":"exit code 1","tail":"x","cause":"program","begun":2.0}
{"at":3.0,"what":"task-dropped","task":2,"why":"no time"}
{"at":4.0,"what":"task-lost","task":3,"why":"gone","cause":"lost","used_bytes":0}
{"at":5.0,"what":"job-ended","why":["done",""]}
"""


def test_a_line_of_each_kind_is_read_and_written_alike() -> None:
    lines = LINES.splitlines(keepends=True)
    assert [encode(decode(line.encode())) for line in lines] == lines
    kinds = [type(decode(line.encode())) for line in lines]
    assert kinds == [
        AgentStarted,
        AttemptStarted,
        AttemptFinished,
        AttemptFailed,
        TaskDeclined,
        AttemptLost,
        AgentLeft,
    ]


@pytest.mark.slow
@given(st.lists(records, min_size=1, max_size=6), st.data())
def test_a_reader_sees_each_record_once_however_the_file_grows(
    written: list[Record], data: st.DataObject
) -> None:
    whole = "".join(map(encode, written)).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    with TemporaryDirectory() as folder:
        path = Path(folder, "events")
        tail = Tail(path)
        seen = tail.read()
        for end in [*cuts, len(whole)]:
            path.write_bytes(whole[:end])
            seen += tail.read()
            assert len(seen) == whole[:end].count(b"\n")
        assert seen == written


def test_a_hole_in_the_middle_is_an_error_that_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_text(
        encode(AttemptLost(1, 2, "x")) + '{"at": 3, "wh\n' + encode(AgentLeft(4, _LEFT))
    )
    with pytest.raises(InputError, match=r"events:2: is not an event"):
        Tail(path).read()


def test_what_has_not_arrived_yet_is_waited_for(tmp_path: Path) -> None:
    """A network file system may show the second write before the first, with zeros in its place."""
    path, first, second = (
        tmp_path / "events",
        encode(AttemptLost(1, 2, "x")),
        encode(AgentLeft(4, _LEFT)),
    )
    tail = Tail(path)
    path.write_bytes(b"\0" * len(first) + second.encode())
    assert tail.read() == []
    path.write_text(first + second)
    assert tail.read() == [AttemptLost(1, 2, "x"), AgentLeft(4, _LEFT)]
    assert tail.has_ended


def test_nothing_is_in_the_file_before_it_is_flushed(tmp_path: Path) -> None:
    writer = Writer(tmp_path / "events")
    writer.add(AgentLeft(1, _LEFT))
    assert Tail(tmp_path / "events").read() == []
    writer.flush()
    assert Tail(tmp_path / "events").read() == [AgentLeft(1, _LEFT)]
    assert (tmp_path / "events").stat().st_mode & 0o777 == 0o600


def test_an_unwritable_place_is_named(tmp_path: Path) -> None:
    with pytest.raises(OutsideError, match="nowhere/events cannot be written: No such file"):
        Writer(tmp_path / "nowhere" / "events")


def test_a_write_that_does_not_fit_is_taken_back_whole(tmp_path: Path) -> None:
    """With room for some lines and a half, the file ends with the last flush that fitted."""
    code = """
import sys
from pathlib import Path
from windrow.agent.event_file import Writer, AgentLeft
from windrow.model.attempt import Leave, Leaving
from windrow.errors import OutsideError
writer = Writer(Path(sys.argv[1]))
for n in range(1000):
    writer.add(AgentLeft(n, Leaving(Leave.TROUBLE, "a" * 40)))
    writer.add(AgentLeft(n, Leaving(Leave.TROUBLE, "b" * 40)))
    try:
        writer.flush()
    except OutsideError as error:
        print(n, error)
        break
"""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    path = tmp_path / "events"
    command = [sys.executable, "-c", code, str(path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, preexec_fn=limit)
    flushed = int(answer.stdout.split()[0])
    assert "cannot be written: File too large" in answer.stdout
    assert 0 < flushed < 1000
    assert len(Tail(path).read()) == 2 * flushed
    assert path.read_bytes().endswith(b"\n")
