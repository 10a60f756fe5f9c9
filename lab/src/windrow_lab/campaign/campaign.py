"""A campaign is data: logs x requests x rules x workflows x submission times x strategies x caps x
seeds.

It falls into chunks, one for each log, kind of requests, rules, workflow and cap. A chunk holds all
submission times, strategies and seeds, which share warm clusters and estimates; it is the unit of
parallel work and of what is kept on disk. Law: the digest of a chunk says everything its rows
depend on, the code that makes them included. So a chunk on disk may always be used again, and never
after data or code have changed.
"""

import hashlib
import json
from dataclasses import asdict, dataclass
from itertools import product

from windrow.errors import UserError
from windrow.model.failures import NO_FAILURES, Failures
from windrow.sim.settings import REQUESTS, ClusterSettings, choice
from windrow.strategies import Strategy
from windrow_lab.campaign.code import code_digest
from windrow_lab.campaign.sources import LogSource, WorkflowSource

Option = int | float | bool

_ROWS = "windrow_lab.campaign.rows"


@dataclass(frozen=True, slots=True)
class BatchRules:
    """How the batch system works; the words are those of `windrow.sim.settings`."""

    policy: str = "conservative"
    priority: str = "arrival"
    events: str = "batched"
    placement: str = "count"

    @property
    def label(self) -> str:
        """The policy, and whatever differs from the default."""
        usual = BatchRules()
        others = [v for k, v in asdict(self).items() if k != "policy" and v != getattr(usual, k)]
        return " ".join([self.policy, *others])


@dataclass(frozen=True, slots=True)
class Chunk:
    """The trials of one workflow on one cluster under one cap. `terms` are options of
    `manager.terms.Terms`."""

    log: LogSource
    requests: str
    rules: BatchRules
    workflow: WorkflowSource
    cap: int
    submit_s: tuple[int, ...]
    strategies: tuple[Strategy, ...]
    seeds: tuple[int, ...]
    noise: float
    terms: tuple[tuple[str, Option], ...]
    failures: Failures = NO_FAILURES

    @property
    def trials(self) -> int:
        """How many rows it gives."""
        return len(self.submit_s) * len(self.strategies) * len(self.seeds)

    @property
    def weight(self) -> float:
        """About how long it takes, in no unit: trials times tasks."""
        return float(self.trials * self.workflow.tasks)

    @property
    def name(self) -> str:
        """For people; not unique."""
        return (
            f"{self.log.name}-{self.requests}-{self.workflow.name}-cap{self.cap}".lower().replace(
                " ", "_"
            )
        )

    def digest(self) -> str:
        """Of everything that its rows depend on."""
        makers = (type(part).__module__ for part in (self.log, self.workflow, *self.strategies))
        parts = {
            "code": code_digest(frozenset([_ROWS, *makers])),
            "log": [self.log.name, self.log.content],
            "requests": self.requests,
            "rules": asdict(self.rules),
            "workflow": [self.workflow.name, self.workflow.content],
            "cap": self.cap,
            "submit_s": self.submit_s,
            "strategies": [f"{type(s).__qualname__} {s!r}" for s in self.strategies],
            "seeds": self.seeds,
            "noise": self.noise,
            "terms": sorted(self.terms),
        }
        if self.failures:
            parts["failures"] = repr(self.failures)
        return _short_digest(json.dumps(parts, sort_keys=True))


@dataclass(frozen=True, slots=True)
class Campaign:
    """See the head of this file. `noise` is the sigma of the log-normal factor on task times; 0
    makes them exact."""

    name: str
    logs: tuple[LogSource, ...]
    workflows: tuple[WorkflowSource, ...]
    submit_s: tuple[int, ...]
    strategies: tuple[Strategy, ...]
    requests: tuple[str, ...] = ("actual",)
    rules: tuple[BatchRules, ...] = (BatchRules(),)
    caps: tuple[int, ...] = (16,)
    seeds: tuple[int, ...] = (0,)
    noise: float = 0.0
    terms: tuple[tuple[str, Option], ...] = ()
    failures: Failures = NO_FAILURES

    def __post_init__(self) -> None:
        for what in (
            "logs",
            "workflows",
            "submit_s",
            "strategies",
            "requests",
            "rules",
            "caps",
            "seeds",
        ):
            self._need_each_once(what)
        for kind in self.requests:
            choice("kind of requests", kind, REQUESTS)
        for rules in self.rules:
            ClusterSettings(**asdict(rules))
        if min(self.submit_s) < 0 or min(self.caps) < 1 or not 0 <= self.noise < 10:
            raise UserError(
                f"campaign {self.name}: times count from 0, caps from 1, and noise is from 0 to "
                "below 10"
            )
        if self.noise == 0 and not self.failures.is_drawn and len(self.seeds) > 1:
            words = "several seeds change nothing without noise or failures"
            raise UserError(f"campaign {self.name}: {words}; set one of them, or one seed")

    def _need_each_once(self, what: str) -> None:
        """UserError if a list is empty, or has something twice."""
        keys = [getattr(value, "name", value) for value in getattr(self, what)]
        if not keys:
            raise UserError(f"campaign {self.name}: {what} is empty; give at least one")
        if twice := [key for key in keys if keys.count(key) > 1]:
            words = f"{twice[0]} occurs twice in {what}; rows could not be distinguished"
            raise UserError(f"campaign {self.name}: {words}")

    def chunks(self) -> list[Chunk]:
        """All of it, in the order of the fields."""
        cells = product(self.logs, self.requests, self.rules, self.workflows, self.caps)
        shared = (tuple(sorted(self.submit_s)), self.strategies, self.seeds, self.noise, self.terms)
        return [Chunk(*cell, *shared, failures=self.failures) for cell in cells]

    @property
    def trials(self) -> int:
        """How many rows its table has."""
        return sum(chunk.trials for chunk in self.chunks())

    def digest(self) -> str:
        """Identifies the campaign: its data and the code that runs it, not its name."""
        return _short_digest(" ".join(sorted(chunk.digest() for chunk in self.chunks())))


def _short_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]
