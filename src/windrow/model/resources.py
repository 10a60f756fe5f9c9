"""What nodes offer. Loads nothing but the standard library, since it is used on compute nodes
too."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from windrow.errors import UserError
from windrow.model.bounds import COUNT_MAX
from windrow.model.size import format_memory

Counts = tuple[tuple[str, int], ...]
"""How many of each named resource, sorted by name."""
GPUS = "gpus"
NOT_NAMES = ("cores", "disk", "gpu", "memory", "nodes")
"""What no named resource may be called."""
_NAME = re.compile(rf"(?!(?:{'|'.join(NOT_NAMES)})$)[A-Za-z][A-Za-z0-9_]{{0,63}}")
_TYPE = "[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}"
_OF_TYPE = re.compile(rf"{GPUS}:({_TYPE})")
_TYPED = re.compile(rf"({_TYPE}):(\d{{1,9}})")


def is_name(name: str) -> bool:
    """Whether a named resource may be called so: tasks find it in a variable of that name."""
    return _NAME.fullmatch(name) is not None


def gpus_of_type(kind: str) -> str:
    """The name by which GPUs of a type are counted, beside `gpus`, which counts those of all
    types."""
    return f"{GPUS}:{kind}"


def gpu_type(name: str) -> str:
    """The type of GPUs that is counted by this name; empty if it counts something else."""
    match = _OF_TYPE.fullmatch(name)
    if match is None:
        return ""
    return match[1]


def typed_gpus(text: str) -> Counts | None:
    """What `a100:2` counts: GPUs, and those of that type; None if the text says something else."""
    match = _TYPED.fullmatch(text)
    if match is None:
        return None
    return ((GPUS, int(match[2])), (gpus_of_type(match[1]), int(match[2])))


@dataclass(frozen=True, slots=True)
class NodeShape:
    """What one node of a cluster offers. The papers' node has one core; memory or disk None means
    unlimited.

    A node has none of a named resource that is not in `counts`.
    """

    cores: int = 1
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    counts: Counts = ()

    def __str__(self) -> str:
        typed = sum(count for name, count in self.counts if gpu_type(name))
        words = [
            amount_text(name, there)
            for name, there in self.amounts().items()
            if there and there != math.inf and not (name == GPUS and there == typed)
        ]
        return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

    def __post_init__(self) -> None:
        if not 1 <= self.cores <= COUNT_MAX:
            raise UserError(f"a node has 1 to {COUNT_MAX:,} cores, not {self.cores}")
        if self.memory_bytes is not None and self.memory_bytes <= 0:
            raise UserError(f"a node needs some memory, not {self.memory_bytes} bytes")

    def amounts(self) -> dict[str, float]:
        """How much of each resource there is, by name."""
        memory, disk = (
            math.inf if size is None else size for size in (self.memory_bytes, self.disk_bytes)
        )
        return {"cores": self.cores, "memory": memory, "disk": disk, **dict(self.counts)}

    def only(self, names: Iterable[str]) -> NodeShape:
        """The same without disk and named resources that are not among these; 0 of those that it
        has not."""
        have = dict(self.counts)
        kept = set(names)
        if "disk" in kept:
            disk_bytes = self.disk_bytes
        else:
            disk_bytes = None
        return replace(
            self,
            disk_bytes=disk_bytes,
            counts=tuple((name, have.get(name, 0)) for name in sorted(kept - {"disk"})),
        )


def meet(shapes: Iterable[NodeShape]) -> NodeShape:
    """What nodes of all these shapes have at least."""
    every = [shape.amounts() for shape in shapes]
    least = {
        name: min(one.get(name, 0) for one in every)
        for name in sorted({name for one in every for name in one})
    }
    cores, *sizes = (least.pop(name) for name in ("cores", "memory", "disk"))
    memory, disk = (None if size == math.inf else int(size) for size in sizes)
    return NodeShape(
        int(cores), memory, disk, tuple((name, int(count)) for name, count in least.items())
    )


def amount_text(name: str, amount: float) -> str:
    """An amount of a resource, for people: `1 core`, `4 GiB of memory`, `2 GPUs`, `3 matlab`."""
    if name in ("memory", "disk"):
        return f"{format_memory(amount)} of {name}"
    word = {"cores": "core", GPUS: "GPU"}.get(name)
    if kind := gpu_type(name):
        word = f"{kind} GPU"
    if word is None:
        return f"{amount:,} {name}"
    plural = "" if amount == 1 else "s"
    return f"{amount:,} {word}{plural}"
