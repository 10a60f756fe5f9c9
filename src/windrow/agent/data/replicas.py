"""When what a task left in a scratch volume is copied to where the loss of its node does no harm: a
replica. Pure.

Law (`cost-benefit`): copy it if what a loss would cost is more than the copy. What a loss costs:
the run times of the tasks that wrote to the volume since its last replica, times the chance that
its node is lost while the volume is needed, p = 1 - exp(-h / MTTF). h: how long the tasks that are
left of the volume should take. MTTF: the node time that was seen, by the losses that were. At first
it is 30 days, a belief that counts as little as a thousandth of a loss: one that counted as a whole
loss would outweigh hundreds that are seen within an hour. What a copy costs: copies share a link,
so the time of those so far, for each that was under way when they started, times those that would
be under way. The first one is made and measured; while it is, no other volume is copied. A volume
that no further task mounts is never copied: what is wanted of it is extracted. Nothing is copied
into space that others need.
"""

from __future__ import annotations

import math

NEVER, ALWAYS, COST_BENEFIT = RULES = ("never", "always", "cost-benefit")
"""When replicas are made: `always` is after every task but the last of a volume."""
PRIOR_S = 30 * 86.4
PRIOR_LOSSES = 0.001
"""The node time and the losses that are believed before any is seen."""


class Replicas:
    """The decisions of one job."""

    def __init__(
        self, rule: str = COST_BENEFIT, *, seen_s: float = 0.0, losses: float = 0.0
    ) -> None:
        """`seen_s`: node time that was seen so far, and what was lost in it."""
        self._rule = rule
        self._seen_s = seen_s
        self._losses = losses
        # copies, each counted with those under way when it started; their time
        self._measured = 0
        self._copying_s = 0.0
        self._under_way: dict[
            str, int
        ] = {}  # by volume, how many were when its copy started, with itself
        self._at_risk_s: dict[str, float] = {}  # by volume, since its last replica

    @property
    def mttf_s(self) -> float:
        """How long a node is expected to live."""
        return (PRIOR_S + self._seen_s) / (PRIOR_LOSSES + self._losses)

    @property
    def copy_s(self) -> float:
        """What a replica is expected to take that starts now."""
        many = 1 + len(self._under_way)
        if not self._measured:
            if many == 1:
                return 0.0
            return math.inf
        return many * self._copying_s / self._measured

    def wants(
        self, volume: str, ran_s: float, left_s: float, *, has_room: bool = True, rule: str = ""
    ) -> bool:
        """A task that mounts the volume has finished after this time: whether to copy what it left.

        `left_s`: how long the tasks that are left of it should take; 0: none is. `rule`: of this
        volume, if it has one.
        """
        rule = rule or self._rule
        at_risk_s = self._at_risk_s[volume] = self._at_risk_s.get(volume, 0.0) + ran_s
        self._under_way.pop(volume, None)
        if left_s <= 0:
            del self._at_risk_s[volume]
        if left_s <= 0 or rule == NEVER or not has_room:
            return False
        is_worth_it = rule == ALWAYS or at_risk_s * -math.expm1(-left_s / self.mttf_s) > self.copy_s
        if is_worth_it:
            self._under_way[volume] = 1 + len(self._under_way)
        return is_worth_it

    def copied(self, volume: str, took_s: float) -> None:
        """What was left in the volume has been copied."""
        self._measured = self._measured + self._under_way.pop(volume, 1)
        self._copying_s = self._copying_s + took_s
        self._at_risk_s[volume] = 0.0

    def lost(self, volume: str) -> None:
        """The volume is lost with its node: what is left of it is its last replica."""
        self._losses += 1
        self._at_risk_s[volume] = 0.0
        self._under_way.pop(volume, None)

    def passed(self, node_s: float) -> None:
        """Nodes were up for this time."""
        self._seen_s += node_s
