"""Facts of a run are written and read whole."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from windrow.app.facts import Origin, RunFacts, RunRequest, SiteFacts
from windrow.errors import UserError
from windrow.forecast.ledger import Promise
from windrow.model import NodeShape
from windrow.queues.port import Limits
from windrow.story.journal import QueueWords, RunJournal

REQUEST = RunRequest(
    Path("/w.yaml"),
    on="a",
    also=("b",),
    strategy="glume",
    objective="cost",
    deadline_s=7,
    think=2,
    cap=3,
    margin=1.5,
    max_nodes=4,
    copies=2,
    reliability=0.9,
    speculate=True,
    delete_intermediate=True,
    space=10,
    space_order="least-need",
    space_in=("/scratch", 20),
    guarantee=10,
    scratch="/tmp",
    keep=("*.bam",),
    share="peer",
    risk=0.3,
    guess_s=5.0,
    shell={"PATH": "/bin"},
    values={"k": "4"},
    source="snakemake: Snakefile",
    notify="ann@example.org",
)
FACTS = RunFacts(
    request=REQUEST,
    uid="1f",
    tasks=3,
    nodes=4,
    place="slurm.a",
    sites=(SiteFacts("a", "slurm.a", {}, Limits(4, NodeShape(2), max_walltime_s=100)),),
    unable=((0, 2), ()),
    far={"root": "/", "run": "w-1f", "places": {}},
    node_cores=8,
    guesses=1,
    learned=2,
    errors=(0.5, 1.5),
    created_s=1.5,
    version="0.2",
    root="/runs",
    continues="w-1",
    continued_by="w-3",
    trouble="none",
    left="a file",
    promise=Promise(1.0, 2.0, 3.0),
    queue_words=QueueWords("it is down", {0: "Priority"}, ("maintenance",)),
    origin=Origin("windrow run w.yaml", "/home/ann", "login1", "0" * 40),
)


def kept(path: Path, facts: RunFacts) -> RunFacts:
    RunJournal.create(path, facts.written()).close()
    journal = RunJournal.open(path)
    found = RunFacts.read(journal.facts())
    journal.close()
    return found


def test_all_facts_survive_a_journal(tmp_path: Path) -> None:
    usual = RunFacts()
    for one, other in ((FACTS, usual), (REQUEST, usual.request)):
        same = [f.name for f in fields(one) if getattr(one, f.name) == getattr(other, f.name)]
        assert not same, "the test would not see these"
    assert kept(tmp_path / "all", FACTS) == FACTS


def test_what_is_as_usual_is_left_out(tmp_path: Path) -> None:
    facts = RunFacts(request=RunRequest(Path("/w.yaml")), uid="1f")
    assert facts.written() == {"request": {"workflow": Path("/w.yaml")}, "uid": "1f"}
    assert kept(tmp_path / "few", facts) == facts


def test_facts_of_what_waits_are_replaced_by_name(tmp_path: Path) -> None:
    """As the manager writes the words of queues."""
    journal = RunJournal.create(tmp_path / "journal", FACTS.written())
    journal.set_fact("queue_words", QueueWords(reasons={1: "Resources"}))
    journal.set_fact("promise", Promise(4.0, 5.0, 6.0))
    found = RunFacts.read(journal.facts())
    journal.close()
    assert found.queue_words == QueueWords("", {1: "Resources"})
    assert found.promise == Promise(4.0, 5.0, 6.0)


def test_damaged_facts_are_refused_in_one_sentence() -> None:
    with pytest.raises(UserError, match=r"what is kept of the run cannot be read .*created_s"):
        RunFacts.read({"created_s": "yesterday"})
