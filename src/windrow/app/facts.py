"""What a user wants of a run, and what is to be known of a run as long as it is kept.

Rule: both are written and read whole, by their types; what is as usual is left out. A fact that may
change (`trouble`, `left`, ...) is replaced by its name.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from windrow.app.strategies import AUTO
from windrow.errors import UserError
from windrow.forecast.ledger import Promise
from windrow.forecast.runtimes import DEFAULT_RISK
from windrow.manager.terms import CopyRules
from windrow.model import Runnable
from windrow.queues.port import Limits
from windrow.records.compact import compact
from windrow.story.journal import NO_WORDS, QueueWords
from windrow.strategies.base import Objective

GUESS_S = 60.0
"""The run time assumed for a task of which nothing is known."""
_COMMAND_MAX = 4000
_COMMIT_MAX = 64


CAP = 16
"""The most jobs of a run, unless its user says otherwise."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the user wants: a workflow, executed on a queue by a strategy, under these terms.

    `shell` are settings of the queue from the shell in which a run began; None: those of this shell
    count. `also` are further queues: each job goes to the one where it should end first. `space`:
    the most bytes that files may take; `guarantee`: what it has of those of all runs in `space_in`.
    `scratch`: disks of nodes, where `keep` does not stay. `share`: how what many tasks read comes
    there (`model.volume.WAYS`); empty: by each node for itself.
    `values`: of `vars` of the workflow file. `source`: the kind of program that made the workflow,
    of which there is no file then.
    `notify`: a command or a mail address, for the end.
    """

    workflow: Path
    on: str = "local"
    also: tuple[str, ...] = ()
    strategy: str = AUTO
    objective: Objective = "makespan"
    deadline_s: int | None = None
    think: int = 1
    cap: int = CAP
    margin: float = 1.2
    max_nodes: int | None = None
    copies: int = 1
    reliability: float = 0.0
    speculate: bool = False
    delete_intermediate: bool = False
    space: int | None = None
    space_order: str = "auto"
    space_in: tuple[str, int] | None = None
    guarantee: int | None = None
    scratch: str = ""
    keep: tuple[str, ...] = ()
    share: str = ""
    risk: float = DEFAULT_RISK
    guess_s: float = GUESS_S
    shell: Mapping[str, str] | None = None
    values: Mapping[str, str] = field(default_factory=dict)
    source: str = ""
    notify: str = ""

    @property
    def rules(self) -> CopyRules:
        """When tasks that run get copies."""
        return CopyRules(self.reliability, self.speculate)

    def may_copy(self, runnable: Runnable) -> bool:
        """Whether tasks may be in several jobs at a time."""
        return self.copies > 1 or self.rules.are_needed(runnable.steps)


@dataclass(frozen=True, slots=True)
class SiteFacts:
    """One of several sites of a run, as it was at its start."""

    name: str
    place: str
    shell: Mapping[str, str]
    limits: Limits


@dataclass(frozen=True, slots=True)
class Origin:
    """The command line, the folder in which it was typed, the host, and the commit of the
    workflow's folder; empty: not known."""

    command: str = ""
    folder: str = ""
    host: str = ""
    commit: str = ""


UNKNOWN = Origin()


def origin_of(workflow: Path) -> Origin:
    """Of a run of this workflow file that begins now, in this process."""
    return Origin(
        command=shlex.join(sys.argv)[:_COMMAND_MAX],
        folder=str(Path.cwd()),
        host=os.uname().nodename,
        commit=_commit(workflow.parent),
    )


def _commit(folder: Path) -> str:
    """The commit that is checked out there, as the files of git say; no git is started."""
    try:
        git = next(up / ".git" for up in (folder, *folder.parents) if (up / ".git").is_dir())
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head[:_COMMIT_MAX]
        name = head.removeprefix("ref: ")
        if (git / name).is_file():
            return (git / name).read_text(encoding="utf-8").strip()[:_COMMIT_MAX]
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
    except (OSError, StopIteration, UnicodeDecodeError):
        return ""
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """The facts of a run. Those of one that cannot be read are as usual."""

    request: RunRequest = RunRequest(Path(), on="")
    """As it was settled: with the strategy that was chosen, and what its sites allow."""
    uid: str = ""
    tasks: int = 0
    place: str = ""
    """Under which name waits at the first site are learned; empty: that of its queue."""
    sites: tuple[SiteFacts, ...] = ()
    """Of a run that has several, all."""
    unable: tuple[tuple[int, ...], ...] | None = None
    """Which tasks may not run at each of these."""
    far: Mapping[str, Any] | None = None
    """What `app.far` has to know of places with files of their own."""
    node_cores: int = 1
    nodes: int = 0
    """How many its first site gives a run at a time; 0: not known."""
    guesses: int = 0
    learned: int = 0
    errors: tuple[float, ...] = ()
    created_s: float = 0.0
    version: str = ""
    origin: Origin = UNKNOWN
    """Who started it, and with what."""
    root: str = ""
    continues: str | None = None
    continued_by: str | None = None
    trouble: str = ""
    left: str = ""
    promise: Promise | None = None
    queue_words: QueueWords = NO_WORDS

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> RunFacts:
        """As a journal has them. UserError if no run wrote them so."""
        try:
            return msgspec.convert(facts, cls, str_keys=True, dec_hook=_path)
        except msgspec.ValidationError as error:
            raise UserError(
                f"what is kept of the run cannot be read ({error}); start the workflow again"
            ) from error

    def written(self) -> dict[str, Any]:
        """As a journal is to have them."""
        told = compact(self)
        assert isinstance(told, dict)
        return told

    @property
    def workflow(self) -> str:
        """The workflow file."""
        return str(self.request.workflow)

    @property
    def on(self) -> str:
        """Where the run is, as `--on` takes it."""
        return ",".join((self.request.on, *self.request.also))


def _path(kind: type[Any], said: object) -> object:
    if kind is not Path:
        raise NotImplementedError(kind.__name__)
    return Path(str(said))
