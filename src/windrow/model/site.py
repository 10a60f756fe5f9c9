"""A site: a queue with its nodes and what it allows. What a run wants is not said here
(`manager.terms`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windrow.errors import UserError
from windrow.model.hazard import NO_HAZARD, Hazard
from windrow.model.resources import NodeShape, meet

if TYPE_CHECKING:
    from windrow.model.conditions import Attributes
    from windrow.model.parts import Sharing


@dataclass(frozen=True, slots=True)
class NodeKind:
    """Nodes that are alike, and how many of them there are."""

    shape: NodeShape
    count: int


def kinds_of(shapes: Iterable[NodeShape]) -> tuple[NodeKind, ...]:
    """These nodes by kind, in the order in which they come."""
    return tuple(NodeKind(shape, count) for shape, count in Counter(shapes).items())


@dataclass(frozen=True, slots=True)
class Site:
    """One queue with its nodes.

    `queue` is what users call its queue, `settings` are those of the shell that belong to it. cap:
    the most jobs of a run in its system. max_nodes: the most nodes of a job, if that is not all.
    max_request_s: the longest time that may be requested; a job that would need more does what it
    can, and the rest is cut again. max_array: jobs that can be submitted at once. starts_at_once:
    no job waits, so each may have the longest time there is, which may be no limit at all. speed:
    how many times as fast tasks run here as their expected times say. room_bytes: for files.
    max_node_hours: what a run may use here; price: of a node-hour. files: sites of the same `files`
    see the same files, those of an empty one the folder from which the run was started. host: where
    its commands run, if not here, and data_host where files are sent, if not there; folder: where
    runs are kept there; setup: what the shell of a job does before its agent starts. attributes:
    what the user says of it, for conditions. hazard: how jobs there are lost, as far as it is
    known; max_preemptions: how often a task may be preempted there before it goes elsewhere.
    sharing: how users share nodes, if jobs here are to have parts of them (`model.parts`). holds:
    whether tasks in such parts are held to what they state.
    """

    name: str
    kinds: tuple[NodeKind, ...]
    queue: str = ""
    cap: int = 16
    max_nodes: int | None = None
    max_request_s: int | None = None
    max_array: int = 1
    starts_at_once: bool = False
    speed: float = 1.0
    room_bytes: int | None = None
    max_node_hours: float | None = None
    price: float = 0.0
    files: str = ""
    host: str = ""
    data_host: str = ""
    folder: str = ""
    setup: str = ""
    attributes: Attributes = field(default_factory=dict)
    hazard: Hazard = NO_HAZARD
    max_preemptions: float = 2
    sharing: Sharing | None = None
    holds: bool = True
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.cap < 1 or not self.kinds or not self.speed > 0:
            raise UserError("a site needs a cap of at least 1 job, some nodes and a speed above 0")

    @classmethod
    def of(cls, nodes: int, shape: NodeShape | None = None, **more: Any) -> Site:
        """One with nodes that are all alike."""
        return cls(kinds=(NodeKind(shape or NodeShape(), nodes),), **{"name": ""} | more)

    @property
    def nodes(self) -> int:
        """All its nodes."""
        return sum(kind.count for kind in self.kinds)

    @property
    def job_nodes(self) -> int:
        """The most nodes of a job."""
        if self.max_nodes is None:
            return self.nodes
        return min(self.nodes, self.max_nodes)

    @property
    def shape(self) -> NodeShape:
        """What every node offers at least."""
        return meet(kind.shape for kind in self.kinds)

    def described(self) -> list[Attributes]:
        """What conditions may ask for, of each kind of its nodes."""
        own: dict[str, float | str] = {
            "site": self.name,
            "queue": self.queue,
            "nodes": self.nodes,
            "price": self.price,
        }
        own |= {
            "speed": self.speed,
            "host": self.host,
            **{name.lower(): v for name, v in self.attributes.items()},
        }
        return [own | kind.shape.amounts() for kind in self.kinds]

    def nodes_held(self, nodes: int, part: NodeShape | None) -> float:
        """To how many nodes these nodes or parts come, by what the site charges for them."""
        if part is None or self.sharing is None:
            return nodes
        billing = self.sharing.billing
        return nodes * billing.of(part) / (billing.of(self.shape) or 1.0)

    def walltime_s(self, requested_s: int) -> int | None:
        """How long a job may take for which this time was requested. None: as long as it needs."""
        if self.starts_at_once:
            return self.max_request_s
        return requested_s
