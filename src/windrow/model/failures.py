"""What fails in a simulated world, how often and for how long; and a draw of it, the same on every
machine.

Nodes fail one by one, independently of each other and of what runs on them. The times for which a
node is up have a Weibull distribution, by default exponential (shape 1), with a mean of `nodes_s`;
then it is out for `repair_s`. Draws begin in the middle of things: nodes have been up for a while,
for how long is as likely as it would be at any moment. (With a shape below 1 a node that has been
up for long is safer than one that was just repaired.) Or they fail as a failure log says
(`formats.failure_log`), whose times count from the log's first submission. What else fails is drawn
where the run is played (`trials.virtual.trials`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gamma
from typing import Any

import numpy as np

from windrow.errors import InputError, UserError, unknown_name
from windrow.model.duration import parse_duration
from windrow.model.graph import Ints
from windrow.model.hazard import Hazard

_MOST = 5_000_000
_EXAMPLE = "nodes=30d,repair=4h"
SLOW = 4
Rows = tuple[tuple[int, int, int], ...]
"""Of a failure log: time, node, until when it is out; by time."""


def _refuse_often(name: str, every_s: float | None) -> None:
    if every_s is not None and not every_s >= 60:
        raise UserError(f"{name} must fail less than once a minute, not every {every_s:g} s")


@dataclass(frozen=True, slots=True)
class Failures:
    """`nodes_s` is the mean time from the repair of a node to its next failure; None: no node
    fails.

    `tasks` is the share of attempts that fail, `slow` of those that take SLOW times as long.
    agents_s, manager_s, queue_s: the mean time after which an agent of the run or its manager is
    killed, or its queue stops to answer; None: never. `away_s`: for how long manager or queue are
    away then. Only runs of the shell know these (`in_shell`).

    `loses`: jobs of others that lose a node are lost; else they are submitted again. `recorded` is
    what the failure log of the name `log` says.
    """

    nodes_s: float | None = None
    repair_s: float = 4 * 3600.0
    shape: float = 1.0
    tasks: float = 0.0
    slow: float = 0.0
    agents_s: float | None = None
    manager_s: float | None = None
    queue_s: float | None = None
    away_s: float = 600.0
    loses: bool = False
    log: str = ""
    recorded: Rows = ()

    def _check_attempts(self) -> None:
        if not 0 <= self.tasks <= 0.5 or not 0 <= self.slow <= 0.5:
            raise UserError(
                "at most half of the attempts at tasks can fail or be slow, not "
                f"{self.tasks + self.slow:.0%}"
            )

    def __post_init__(self) -> None:
        if self.nodes_s is not None and not self.nodes_s >= 1:
            raise UserError(
                f"nodes that fail are up for at least 1 s on average, not {self.nodes_s:g}"
            )
        if self.nodes_s is not None and self.log:
            raise UserError(f"nodes fail by chance or as {self.log} says; give either nodes or log")
        if not self.repair_s >= 1:
            raise UserError(f"the repair of a node takes at least 1 s, not {self.repair_s:g}")
        if not 0.1 <= self.shape <= 20:
            raise UserError(
                "the shape of the times between failures must be from 0.1 to 20, not "
                f"{self.shape:g}"
            )
        self._check_attempts()
        _refuse_often("agents", self.agents_s)
        _refuse_often("manager", self.manager_s)
        _refuse_often("queue", self.queue_s)

    def __bool__(self) -> bool:
        """Whether anything fails."""
        return self.nodes_s is not None or bool(self.log) or self.in_shell

    @property
    def is_drawn(self) -> bool:
        """Whether another seed lets other things fail."""
        return self.nodes_s is not None or self.in_shell

    @property
    def in_shell(self) -> bool:
        """Whether more than nodes fail."""
        return bool(self.tasks or self.slow) or any(
            s is not None for s in (self.agents_s, self.manager_s, self.queue_s)
        )

    @classmethod
    def parse(cls, text: str, read: Callable[[str], Rows]) -> Failures:
        """What `nodes=30d,repair=4h,shape=0.7` means, or `log=FILE,jobs=lost`, or `none`; `read`
        reads a failure log.

        UserError with an example if it is wrong.
        """
        if text == "none":
            return cls()
        try:
            values = _values(text)
            if "log" in values:
                recorded = read(values["log"])
            else:
                recorded = ()
            return cls(**values, recorded=recorded)
        except InputError:
            raise  # it names its file and line
        except UserError as error:
            raise UserError(f"failures {text!r}: {error}") from None

    @classmethod
    def of(cls, hazard: Hazard) -> Failures:
        """Nodes of this hazard; how long they are out it does not say."""
        if hazard.scale_s:
            return cls(max(1.0, hazard.nodes_s), shape=min(max(hazard.shape, 0.1), 20.0))
        return cls()

    def draw(self, seed: int, nodes: int, start_s: int, end_s: int) -> Ints:
        """Rows (time, node, until when it is out, if jobs are lost), by time, from `start_s` on and
        before `end_s`."""
        if self.nodes_s is None:
            return self._fated(self._recorded(nodes, start_s, end_s))
        if nodes * (end_s - start_s) / (self.nodes_s + self.repair_s) > _MOST:
            raise UserError(
                f"nodes would fail more than {_MOST:,} times; let them fail less often, or "
                "shorten the log"
            )
        return self._fated(self._by_chance(seed, nodes, start_s, end_s, self.nodes_s))

    def _recorded(self, nodes: int, start_s: int, end_s: int) -> Ints:
        rows: Ints = np.array(self.recorded, dtype=np.int64).reshape(-1, 3)
        rows = rows + np.array([start_s, 0, start_s])
        if len(rows) and rows[:, 1].max() >= nodes:
            raise UserError(
                f"{self.log} has a node {rows[:, 1].max()}, and the machine has nodes 0 to "
                f"{nodes - 1}; leave it out"
            )
        return rows[rows[:, 0] < end_s]

    def _by_chance(self, seed: int, nodes: int, start_s: int, end_s: int, mean_s: float) -> Ints:
        draws = np.random.Generator(np.random.PCG64(seed))
        scale = mean_s / gamma(1 + 1 / self.shape)
        repair = round(self.repair_s)
        # The life in which a moment falls is longer than most, as the moment is likelier to fall
        # into a long one.
        whole_lives = draws.standard_gamma(1 + 1 / self.shape, nodes) ** (1 / self.shape)
        lives = whole_lives * draws.random(nodes)
        at = np.full(nodes, start_s, dtype=np.int64)
        found = []
        while (at < end_s).any():
            at += np.maximum(1, np.ceil(np.minimum(lives * scale, end_s))).astype(np.int64)
            found.append(np.stack([at, np.arange(nodes), at + repair], axis=1)[at < end_s])
            at += repair
            lives = draws.weibull(self.shape, nodes)
        rows = np.concatenate(found)
        return rows[np.lexsort((rows[:, 1], rows[:, 0]))]

    def _fated(self, rows: Ints) -> Ints:
        return np.insert(rows, 3, int(self.loses), axis=1)


NO_FAILURES = Failures()

_TIMES = "nodes", "repair", "agents", "manager", "queue", "away"
_NUMBERS = {"shape": "0.7", "tasks": "1%", "slow": "5%"}
_JOBS = ("again", "lost")
_KEYS = (
    {name: f"{name}_s" for name in _TIMES}
    | {name: name for name in (*_NUMBERS, "log")}
    | {"jobs": "loses"}
)


def _values(text: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for part in text.split(","):
        key, is_given, value = (word.strip() for word in part.partition("="))
        if key not in _KEYS:
            raise unknown_name("kind of failure", key, _KEYS)
        if not is_given or _KEYS[key] in values:
            raise UserError(f"give {key} once, with a value, as in {_EXAMPLE}")
        values[_KEYS[key]] = _value(key, value)
    if not values.keys() - {"repair_s", "shape", "away_s", "loses"}:
        raise UserError(f"how often does what fail? Give nodes, log or tasks, as in {_EXAMPLE}")
    return values


def _value(key: str, value: str) -> float | bool | str:
    if key == "log":
        return value
    if key == "jobs" and value not in _JOBS:
        raise unknown_name("fate of jobs that lose a node", value, _JOBS)
    if key == "jobs":
        return value == "lost"
    if key not in _NUMBERS:
        return parse_duration(value)
    try:
        number = float(value.removesuffix("%"))
    except ValueError:
        raise UserError(f"{value!r} is not a number; {key} is one, as {_NUMBERS[key]}") from None
    if value.endswith("%"):
        return number / 100
    return number
