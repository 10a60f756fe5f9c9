"""Orders and results: what a node is told to execute, and what it answers.

The agent's own node takes them as they are; to other nodes they travel as JSON lines.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Order:
    """Execute one attempt of a task.

    `env` is added to the node's own environment. `out` is the file for what it prints. `inputs` and `outputs` are
    absolute paths; each may take up to `patience_s` to show up.
    """

    task: int
    attempt: int
    command: tuple[str, ...]
    workdir: str
    env: Mapping[str, str]
    out: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    patience_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    """How an attempt ended. An empty `why` means that it succeeded."""

    task: int
    attempt: int
    exit: int | None
    signal: int | None
    why: str
    cpu_s: float = 0.0
    peak_bytes: int = 0
    tail: str = ""

    @property
    def may_be_stop(self) -> bool:
        """Whether it looks like the end of a task that was told to go, with the whole job or alone."""
        return self.signal == signal.SIGTERM or self.exit == 128 + signal.SIGTERM


def to_line(value: Order | Result) -> bytes:
    """The value as one line of JSON."""
    record = {f.name: getattr(value, f.name) for f in fields(value)}
    if isinstance(value, Order):
        record["env"] = dict(value.env)
    return json.dumps(record).encode() + b"\n"


def order_from(record: dict[str, Any]) -> Order:
    """The order in this record."""
    lists = {name: tuple(record[name]) for name in ("command", "inputs", "outputs")}
    return Order(**{**record, **lists})
