"""What a simulated cluster can be told to do: names, their meaning, and the numbers that kernels
know them by.

This module loads neither numba nor any kernel, so that help texts and error messages cost nothing.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from windrow.errors import UserError, unknown_name
from windrow.kernels.cluster import state as k
from windrow.model.bounds import COUNT_MAX

POLICIES: Mapping[str, str] = {
    "fcfs": "first come, first served: nothing passes the head of the queue",
    "easy": "backfilling that never delays the head of the queue",
    "easy-strict": "as easy, but what passes the head must end before the head's reservation",
    "depth:K": "backfilling that never delays the first K blocked jobs; depth:1 is easy",
    "conservative": "every job has a reservation; a promised start never gets later",
    "conservative-replan": "every job has a reservation; all are planned again, in queue order, "
    "when a job ends early",
}
EVENTS: Mapping[str, str] = {
    "batched": "at one instant: all ends, then all arrivals, then one scheduling pass",
    "one-by-one": "at one instant: arrivals, each with its own pass, then ends, each with its own",
    "ends-first": "at one instant: ends, each with its own pass, then arrivals, each with its own",
}
PLACEMENTS: Mapping[str, str] = {
    "count": "nodes are interchangeable and only counted",
    "leftmost": "nodes have identities: a job keeps the free nodes of lowest number that its "
    "reservation got",
    "contiguous": "as leftmost, but the nodes of a job must be neighbours",
}
REQUESTS: Mapping[str, str] = {
    "actual": "requested times are those that users gave",
    "accurate": "requested times are the run times",
}
PRIORITIES: Mapping[str, str] = {
    "arrival": "in the order of arrival",
    "fcfs": "the longest wait first (weight 100 a minute, nothing else)",
    "fl": "favours large jobs: 1 a minute of wait, 10 a node up to 128 nodes",
    "fs": "favours small jobs: 1 a minute of wait, -10 a node up to 128 nodes",
    "NAME=WEIGHT,...": "own weights: wait, xfactor, nodes, area, requested, share (a cap as "
    "NAME^CAP=WEIGHT; half_life in hours), and user:ID for the jobs of a user of the log",
}

_EVENT_CODES = {"batched": k.BATCHED, "one-by-one": k.ONE_BY_ONE, "ends-first": k.ENDS_FIRST}
_PLACEMENT_CODES = {"count": k.COUNTED, "leftmost": k.LEFTMOST, "contiguous": k.CONTIGUOUS}


@dataclass(frozen=True, slots=True)
class Priority:
    """Weights of a Maui-like priority: a sum of weight x min(factor, cap). The highest goes first,
    equals by arrival.

    wait    minutes in the queue (no cap by default, so no job starves)
    xfactor (wait + requested) / requested
    nodes   nodes asked for
    area    node-hours asked for
    requested   hours asked for
    users   by their ids in the log: what all jobs of a user have more, or less, in points
    share   the user's recent part of all node-seconds, in percent; counts against the job. Fades with `half_life_h`.
    """  # noqa: E501

    wait: float = 0.0
    xfactor: float = 0.0
    nodes: float = 0.0
    area: float = 0.0
    share: float = 0.0
    wait_cap: float = math.inf
    xfactor_cap: float = math.inf
    nodes_cap: float = math.inf
    area_cap: float = math.inf
    requested: float = 0.0
    requested_cap: float = math.inf
    users: tuple[tuple[int, float], ...] = ()
    half_life_h: float = 24.0

    @property
    def changes(self) -> bool:
        """Whether the order of two waiting jobs can change with time."""
        return bool(self.xfactor or self.share or math.isfinite(self.wait_cap))

    def weights(self) -> list[int]:
        """As kernels want them: in thousandths, half-life in seconds."""
        pairs = [(self.wait, self.wait_cap), (self.xfactor, self.xfactor_cap)]
        pairs += [(self.nodes, self.nodes_cap), (self.area, self.area_cap)]
        numbers = [number for pair in pairs for number in pair] + [
            self.share,
            self.half_life_h * 3600,
            self.requested,
            self.requested_cap,
        ]
        return [thousandths(number) for number in numbers]


def thousandths(number: float) -> int:
    """As kernels want a weight or a cap."""
    return round(number * 1000) if math.isfinite(number) else 10**14


_NAMED = {
    "fcfs": Priority(wait=100),
    "fl": Priority(wait=1, nodes=10, nodes_cap=128),
    "fs": Priority(wait=1, nodes=-10, nodes_cap=128),
}


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The rules of one simulated cluster, checked."""

    policy: str = "conservative"
    priority: str = "arrival"
    events: str = "batched"
    placement: str = "count"
    cap: int | None = None
    code: int = field(init=False)
    depth: int = field(init=False)

    def __post_init__(self) -> None:
        code, depth = parse_policy(self.policy)
        choice("order of events", self.events, EVENTS)
        choice("placement", self.placement, PLACEMENTS)
        if self.cap is not None and not 1 <= self.cap <= COUNT_MAX:
            raise UserError(
                f"the cap on a user's jobs must be from 1 to {COUNT_MAX:,}, not {self.cap}"
            )
        if self.placement != "count" and code == k.EASY and depth == 0:
            raise UserError("policy easy-strict counts nodes; leave out the placement")
        if self.placement != "count" and code == k.EASY:
            # the shadow rule counts nodes; with identities, depth 1 is EASY
            code = k.BY_DEPTH
            depth = 1
        object.__setattr__(self, "code", code)
        object.__setattr__(self, "depth", depth)
        parse_priority(self.priority)

    def rules(self) -> dict[int, int]:
        """Header entries of a new state."""
        priority = parse_priority(self.priority)
        if priority is None:
            order = k.ARRIVAL
        elif priority.changes:
            order = k.CHANGING
        else:
            order = k.FIXED
        if priority is None:
            weights = [0] * 12
        else:
            weights = priority.weights()
        return {
            k.POLICY: self.code,
            k.DEPTH: self.depth,
            k.EVENT_ORDER: _EVENT_CODES[self.events],
            k.QUEUE_ORDER: order,
            k.PLACEMENT: _PLACEMENT_CODES[self.placement],
            k.CAP: self.cap or 0,
        } | {k.WEIGHTS + i: weight for i, weight in enumerate(weights)}


def parse_policy(text: str) -> tuple[int, int]:
    """The kernels' number of a policy, and its depth. UserError for an unknown one."""
    codes = {"fcfs": (k.FCFS, 0), "easy": (k.EASY, 1), "conservative": (k.CONSERVATIVE, -1)}
    codes["easy-strict"] = (k.EASY, 0)
    codes["conservative-replan"] = (k.BY_DEPTH, -1)
    name, _, depth = text.strip().lower().partition(":")
    if name == "depth":
        return k.BY_DEPTH, _depth(text, depth)
    if depth or name not in codes:
        raise unknown_name("policy", text, POLICIES)
    return codes[name]


def _depth(policy: str, depth: str) -> int:
    """-1 if there is no limit."""
    if depth in ("inf", "infinity"):
        return -1
    if not (depth.isdecimal() and len(depth) < 10 and 1 <= int(depth) <= COUNT_MAX):
        allowed = f"a depth from 1 to {COUNT_MAX:,}, like depth:4 (depth:1 is easy)"
        raise UserError(f"policy {policy[:40]!r} needs {allowed}")
    return int(depth)


_PRIORITY_FIELDS = {field.name for field in fields(Priority)} - {"users"}
_FACTORS = ("wait", "xfactor", "nodes", "area", "requested", "share", "user:ID")


def parse_priority(text: str) -> Priority | None:
    """The weights meant by a name, or by `wait=1,nodes^64=10,share=5`; None for the order of
    arrival."""
    name = text.strip().lower()
    if name == "arrival":
        return None
    if name in _NAMED:
        return _NAMED[name]
    if "=" not in name:
        raise unknown_name("priority", text, PRIORITIES)
    values: dict[str, float] = {}
    users: dict[int, float] = {}
    for part in name.split(","):
        key, _, number = part.partition("=")
        key, _, cap = key.strip().partition("^")
        if key.startswith("user:"):
            users[_user(text, key, users)] = _number(number, part)
            continue
        if key == "half_life":
            key = "half_life_h"
        if key not in _PRIORITY_FIELDS or key.endswith("_cap"):
            raise unknown_name("priority weight", key, _FACTORS)
        if key in values:
            raise UserError(f"priority {text!r}: {key} is given twice; keep one")
        values[key] = _number(number, part)
        if cap:
            values[f"{key}_cap"] = _cap(text, key, _number(cap, part))
    if values.get("half_life_h", 1) <= 0:
        raise UserError(f"priority {text!r}: half_life must be above zero (hours)")
    return Priority(**values, users=tuple(users.items()))


def _user(text: str, key: str, known: Mapping[int, float]) -> int:
    number = key.removeprefix("user:").removeprefix("-")
    if not number.isdecimal():
        raise UserError(f"priority {text!r}: a user is a number of the log, like user:17=500")
    found = int(key.removeprefix("user:"))
    if found in known:
        raise UserError(f"priority {text!r}: {key} is given twice; keep one")
    return found


def _cap(text: str, key: str, cap: float) -> float:
    if cap <= 0:
        raise UserError(f"priority {text!r}: the cap of {key} must be above zero")
    if f"{key}_cap" not in _PRIORITY_FIELDS:
        raise UserError(f"priority {text!r}: {key} has no cap")
    return cap


def choice(what: str, value: str, known: Mapping[str, str]) -> str:
    """The value, if it is known; else UserError."""
    if value not in known:
        raise unknown_name(what, value, known)
    return value


def _number(text: str, part: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or abs(value) > 1e4:
        raise UserError(
            f"priority weight {part!r} needs a number up to 10000, like wait=1 or nodes^64=10"
        )
    return value
