"""The journal: what goes in comes out, in order, in one piece, whoever dies and whatever the disk
does."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow import files
from windrow.errors import InputError, OutsideError
from windrow.model.cause import Cause
from windrow.story import events as e
from windrow.story.journal import PredictedStart, Record, RunJournal
from windrow.strategies.base import Candidate, Decision, JobPlan

NUMBERS = st.integers(0, 2**40)
TEXTS = st.text(max_size=20)
PLANS = st.builds(
    JobPlan,
    st.lists(NUMBERS, min_size=1, max_size=4).map(tuple),
    NUMBERS,
    NUMBERS,
    NUMBERS,
    NUMBERS,
)
CANDIDATES = st.builds(
    Candidate, TEXTS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.none() | NUMBERS, TEXTS
)
DECISIONS = st.builds(
    Decision,
    st.lists(PLANS, max_size=3).map(tuple),
    st.lists(CANDIDATES, max_size=2).map(tuple),
    TEXTS,
    st.booleans(),
)
EVENTS = st.one_of(
    st.builds(e.RunBegan, NUMBERS),
    st.builds(e.RunStopped, NUMBERS),
    st.builds(e.JobsPlanned, NUMBERS, DECISIONS),
    st.builds(e.JobSubmitted, NUMBERS, NUMBERS, TEXTS),
    st.builds(e.JobRejected, NUMBERS, NUMBERS, TEXTS),
    st.builds(e.JobStarted, NUMBERS, NUMBERS),
    st.builds(e.JobEnded, NUMBERS, NUMBERS),
    st.builds(e.JobKilled, NUMBERS, NUMBERS, st.sampled_from(Cause), TEXTS),
    st.builds(e.TaskStarted, NUMBERS, NUMBERS, NUMBERS),
    st.builds(e.TaskRetried, NUMBERS, NUMBERS, NUMBERS),
    st.builds(e.TaskFinished, NUMBERS, NUMBERS),
    st.builds(e.TaskFailed, NUMBERS, NUMBERS),
    st.builds(e.TaskDropped, NUMBERS, NUMBERS, NUMBERS),
)
DETAILS = st.none() | st.dictionaries(TEXTS, st.none() | NUMBERS | TEXTS | st.floats(-1e9, 1e9))
RECORDS = st.builds(Record, EVENTS, DETAILS, st.floats(0, 2**40))


@pytest.fixture
def journal(tmp_path: Path) -> RunJournal:
    return RunJournal.create(tmp_path / "journal.sqlite", {"uid": "x"})


def read(path: Path) -> list[Record]:
    journal = RunJournal.open(path)
    found = [record for _, record in journal.records()]
    journal.close()
    return found


@pytest.mark.slow
@given(batches=st.lists(st.lists(RECORDS, max_size=4), max_size=4))
def test_what_goes_in_comes_out(tmp_path: Path, batches: list[list[Record]]) -> None:
    path = tmp_path / "journal.sqlite"
    path.unlink(missing_ok=True)
    journal = RunJournal.create(path, {})
    journal._db.execute("PRAGMA synchronous=OFF")
    for batch in batches:
        journal.append(batch)
    journal.close()
    assert read(path) == [record for batch in batches for record in batch]


def test_numbers_of_numpy_come_out_as_numbers(journal: RunJournal) -> None:
    plan = JobPlan((np.int64(3),), np.int64(2), np.int64(5), np.int64(6))  # type: ignore[arg-type]
    journal.append([Record(e.JobsPlanned(1, Decision((plan,))))])
    (record,) = read(journal.path)
    assert record.event == e.JobsPlanned(1, Decision((JobPlan((3,), 2, 5, 6),)))


def test_events_and_offsets_are_one(journal: RunJournal) -> None:
    """Whoever dies in between loses both: the words are read again and journaled once."""
    journal.append([Record(e.RunBegan(1))], {0: 10})
    journal._db.execute("BEGIN IMMEDIATE")
    journal._db.execute(
        "INSERT INTO events (at_s, kind, body) VALUES (2, 'RunStopped', '{\"at_s\":2}')"
    )
    journal._db.execute("INSERT OR REPLACE INTO offsets VALUES (0, 99)")
    journal.close()  # without a commit, as when its process is killed
    assert read(journal.path) == [Record(e.RunBegan(1))]
    again = RunJournal.open(journal.path, writable=True)
    assert again.offsets() == {0: 10}
    again.append([], {0: 20, 1: 5})
    assert again.offsets() == {0: 20, 1: 5}


def test_readers_see_what_is_committed_while_it_is_written(journal: RunJournal) -> None:
    reader = RunJournal.open(journal.path)
    journal.append([Record(e.RunBegan(1)), Record(e.RunStopped(2))])
    assert [seq for seq, _ in reader.records()] == [1, 2]
    journal.append([Record(e.RunBegan(3))])
    assert [(seq, record.event) for seq, record in reader.records(after=2)] == [(3, e.RunBegan(3))]


def test_facts_and_predictions(journal: RunJournal) -> None:
    journal.set_fact("trouble", "none")
    journal.set_fact("trouble", "some")
    assert journal.facts() == {"format": 4, "uid": "x", "trouble": "some"}
    said = [
        PredictedStart(0, "twin", 1.5, 2, 60, 7.25, 1),
        PredictedStart(0, "system", 1.5, 2, 60, 9.0, 0),
    ]
    journal.predict(said)
    assert journal.predictions() == said


def test_a_reader_cannot_write(journal: RunJournal) -> None:
    with pytest.raises(OutsideError, match=r"journal\.sqlite: the journal cannot be used"):
        RunJournal.open(journal.path).append([Record(e.RunBegan(1))])


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    with pytest.raises(InputError, match="there is no journal here; windrow runs lists"):
        RunJournal.open(path)
    path.write_bytes(b"something else, and long enough to be looked at" * 100)
    with pytest.raises(OutsideError, match="not a database"):
        RunJournal.open(path)
    path.unlink()
    RunJournal.create(path, {"format": 7}).close()
    with pytest.raises(InputError, match="format 7 is not 4"):
        RunJournal.open(path)


def test_what_could_not_be_kept_leaves_no_trace(journal: RunJournal) -> None:
    with pytest.raises(OutsideError, match="the journal cannot be used"):
        journal.append([Record(e.RunBegan(1))], {0: object()})  # type: ignore[dict-item]
    journal.append([Record(e.RunBegan(2))], {0: 5})
    assert read(journal.path) == [Record(e.RunBegan(2))]


@pytest.mark.parametrize(
    ("kind", "body"), [("JobWasEaten", '{"at_s":1}'), ("RunBegan", '{"at_s":'), ("RunBegan", "{}")]
)
def test_a_record_that_nobody_knows_is_named_not_traced(
    journal: RunJournal, kind: str, body: str
) -> None:
    journal._db.execute("INSERT INTO events (at_s, kind, body) VALUES (1, ?, ?)", (kind, body))
    with pytest.raises(
        InputError, match=rf"journal\.sqlite: record 1 \({kind}\) cannot be read; use the version"
    ):
        read(journal.path)


def test_when_it_is_closed_all_of_it_is_in_one_file(journal: RunJournal, tmp_path: Path) -> None:
    journal.close()
    writer = RunJournal.open(journal.path, writable=True)
    reader = RunJournal.open(journal.path)
    written = [Record(e.RunBegan(n)) for n in range(3)]
    writer.append(written)
    assert reader.facts()
    writer.close()  # while somebody reads
    alone = tmp_path / "alone" / "journal.sqlite"
    alone.parent.mkdir()
    alone.write_bytes(journal.path.read_bytes())
    assert read(alone) == written
    reader.close()
    RunJournal.open(journal.path, writable=True).close()
    assert [path.name for path in journal.path.parent.glob("journal.sqlite*")] == ["journal.sqlite"]


def test_who_reads_again_and_again_leaves_the_file_to_who_writes(journal: RunJournal) -> None:
    """Else empty files stayed beside it, after each run that somebody looked at."""
    journal.close()
    writer = RunJournal.open(journal.path, writable=True)
    reader = RunJournal.open(journal.path)
    assert not list(reader.records())
    reader.rest()
    writer.append([Record(e.RunBegan(0))])
    writer.close()
    assert [path.name for path in journal.path.parent.glob("journal.sqlite*")] == ["journal.sqlite"]
    assert [record.event for _, record in reader.records()] == [e.RunBegan(0)]
    reader.close()


def test_on_a_shared_file_system_there_is_no_shared_memory(
    journal: RunJournal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.close()
    mounts = tmp_path / "mounts"
    mounts.write_text(f"36 35 0:40 / {tmp_path.resolve()} rw - nfs4 server:/x rw\n")
    RunJournal.open(
        journal.path, writable=True
    )._db.close()  # a killed writer of an earlier version left it ahead
    for shm in tmp_path.glob("*-shm"):
        shm.unlink()
    with monkeypatch.context() as patch:
        shared = partial(files.is_shared, mounts=mounts)
        patch.setattr("windrow.records.journal.is_shared", shared)
        writer = RunJournal.open(journal.path, writable=True)
        writer.append([Record(e.RunBegan(1))])
        reader = RunJournal.open(journal.path)
        assert [record for _, record in reader.records()] == [Record(e.RunBegan(1))]
        writer.append([Record(e.RunBegan(2))])
        assert len(read(journal.path)) == 2
        assert [path.name for path in journal.path.parent.glob("journal.sqlite*")] == [
            "journal.sqlite"
        ]
        writer.close()


def test_a_damaged_journal_is_named_not_traced(journal: RunJournal) -> None:
    journal.append([Record(e.RunBegan(n), {"filler": "x" * 500}) for n in range(200)])
    journal.close()
    with sqlite3.connect(journal.path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    data = bytearray(journal.path.read_bytes())
    data[-20_000:] = b"\xff" * 20_000
    journal.path.write_bytes(bytes(data))
    with pytest.raises(OutsideError, match="the journal cannot be used"):
        read(journal.path)
