"""A scenario: one workflow, one log, one set of terms. Every trial in it differs only in strategy
and submission time.

Rule 1: times count in seconds from the log's first submission. Rule 2: what tasks really take
depends on the workflow, noise, seed and submission time alone (`task_times`), and which nodes fail
when on the seed alone (`failing`), so that strategies are compared on the same luck, and a time
tried alone gives the same trial as among others. Rule 3: trials of one scenario share what
strategies believe (`work`), and with it their estimates.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from windrow.errors import UserError
from windrow.manager.terms import NO_COPIES, CopyRules, Terms
from windrow.model import Log, NodeShape, Workflow, format_duration
from windrow.model.checkpoint import Checkpoint
from windrow.model.failures import NO_FAILURES, Failures
from windrow.model.site import Site
from windrow.model.volume import VolumeMount
from windrow.sim.cluster import Cluster
from windrow.strategies import Strategy, Work, whole_seconds
from windrow.trials.trial import Ints, Trial, recorded_trial

_DAY_S = 86400
_HOUR_S = 3600
_STILL_FAILING_S = (
    30 * _DAY_S
)  # after the log's last submission: in the end every run must come to its end


def embedded_log() -> Log:
    """The log that serves if none is given: 30 days of a synthetic 128-node machine, always the
    same."""
    from windrow.recipes import generate_log  # noqa: PLC0415  (most have a log of their own)

    return generate_log("lublin", seed=1, days=30, nodes=128)


@dataclass(frozen=True)
class Scenario:
    """`noise` is the standard deviation of the logarithm of a task's time over its estimate; the
    median stays."""

    workflow: Workflow
    log: Log
    requests: str = "actual"
    policy: str = "conservative"
    cap: int = 16
    margin: float = 1.1
    shape: NodeShape = field(default_factory=NodeShape)
    noise: float = 0.0
    seed: int = 0
    priority: str = "arrival"
    placement: str = "count"
    failures: Failures = NO_FAILURES
    copies: CopyRules = NO_COPIES
    checkpoints: Mapping[int, Checkpoint] = field(default_factory=dict)
    """From which tasks continue that were lost."""
    mounts: Mapping[int, tuple[VolumeMount, ...]] = field(default_factory=dict)
    """Volumes of tasks; these take no part in a simulation."""

    def __post_init__(self) -> None:
        if not 0 <= self.noise <= 5:
            raise UserError(
                f"noise must be a spread from 0 (task times are exact) to 5, not {self.noise:g}"
            )
        if not len(self.log):
            raise UserError(f"log {self.log.name} has no jobs; nothing can be tried on it")

    @property
    def zero_s(self) -> int:
        """The log's first submission, on the log's own clock."""
        return int(self.log.submit_s[0])

    @property
    def last_s(self) -> int:
        """The log's last submission."""
        return int(self.log.submit_s[-1]) - self.zero_s

    @cached_property
    def terms(self) -> Terms:
        """What runs want."""
        return Terms(self.margin)

    @cached_property
    def work(self) -> Work:
        """What strategies believe of the workflow. UserError if a task fits on no node."""
        return Work(
            self.workflow,
            whole_seconds(self.workflow),
            Site.of(self.log.machine_nodes, self.shape, cap=self.cap),
        )

    def cluster(self, *, record: bool = False) -> Cluster:
        """The cluster at the log's first submission."""
        rules = {
            name: getattr(self, name) for name in ("policy", "priority", "placement", "requests")
        }
        failures = failing(self.log, self.failures, self.seed)
        return Cluster(self.log, start_s=self.zero_s, record=record, failures=failures, **rules)

    def warm(self, cluster: Cluster, at_s: int) -> Cluster:
        """Advance the cluster to that time. UserError after the end of the log, if the queue
        would only empty."""
        if not 0 <= at_s <= self.last_s:
            last = f"{self.last_s:,} s ({format_duration(self.last_s)})"
            raise UserError(
                f"time {at_s:,} s is outside log {self.log.name}, whose last job is submitted at "
                f"{last}"
            )
        cluster.advance(self.zero_s + at_s)
        return cluster

    def given(self, at_s: int) -> dict[str, Any]:
        """What a run that is submitted at that time is given, whatever its strategy."""
        actual_s = task_times(self.workflow, self.workflow.name, self.noise, self.seed, at_s)
        run = {
            "terms": self.terms,
            "actual_s": actual_s,
            "work": self.work,
            "checkpoints": self.checkpoints,
        }
        return run | {"failures": self.failures, "seed": self.seed, "copies": self.copies}

    def trial(self, cluster: Cluster, strategy: Strategy) -> Trial:
        """One run from the cluster's current time; the cluster advances with it (give it a
        clone)."""
        return recorded_trial(
            cluster, self.workflow, strategy, **self.given(cluster.now_s - self.zero_s)
        )


def failing(log: Log, failures: Failures, seed: int) -> Ints:
    """Which nodes of the log's machine fail when, from its first submission to a month after its
    last."""
    first = int(log.submit_s[0])
    last = int(log.submit_s[-1])
    return failures.draw(seed, log.machine_nodes, first, last + _STILL_FAILING_S)


def task_times(workflow: Workflow, name: str, noise: float, seed: int, submit_s: int) -> Ints:
    """What the tasks will take, in whole seconds: the same for every strategy, so that trials can
    be compared.

    The factor is log-normal with median 1. A task is as likely to take longer than its estimate as
    shorter, which is what an estimate is; the mean lies above it, by a factor of exp(noise^2 / 2),
    since times have a long tail to one side. Comparisons and campaigns draw alike: the same name,
    seed and submission time give the same times everywhere.
    """
    expected = whole_seconds(workflow)
    if noise == 0:
        return expected
    digest = hashlib.sha256(f"{name}/{seed}/{submit_s}".encode()).digest()
    factor = np.exp(
        noise * np.random.default_rng(int.from_bytes(digest, "big")).standard_normal(len(workflow))
    )
    drawn: Ints = np.maximum(1, np.ceil(expected * factor)).astype(np.int64)
    return drawn


def submission_times(
    log: Log, from_s: int | None = None, to_s: int | None = None, every_s: int | None = None
) -> range:
    """Times from `from_s` to `to_s`, both included: by default every six hours from day 1 to day 7,
    or what there is.

    A log shorter than a week is tried from a seventh of its length on; gaps shrink so that there
    are five times.
    """
    last = int(log.submit_s[-1] - log.submit_s[0]) if len(log) else 0
    end = min(7 * _DAY_S, last) if to_s is None else to_s
    begin = min(_DAY_S, end // 7) if from_s is None else from_s
    if begin > end:
        raise UserError(
            f"there is no time between {begin:,} s and {end:,} s; the first must not be after "
            "the second"
        )
    if every_s is None:
        gap = min(6 * _HOUR_S, max(1, (end - begin) // 4))
    else:
        gap = every_s
    if gap < 1:
        raise UserError("times must be at least a second apart")
    return range(begin, end + 1, gap)
