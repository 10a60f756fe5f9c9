"""Worlds of all kinds in one campaign: each seed draws one, with its sizes and what can go wrong.

Law: whatever a single world can show is shown by some seed, so that one command looks for faults of
the code of which no one knows yet where they are.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from windrow.trials.virtual.drawn import VirtualScenario, may_strike
from windrow.trials.virtual.kinds import FAR, FOR_EVER, FORGETTING, LOCAL, STRANGE, USERS, Kind

_World = Mapping[str, Any]
WORLDS: Sequence[tuple[int, _World]] = (
    (2, {}),
    (8, {"worse": 1}),
    (4, {"local": 1}),
    (2, {"local": 1, "temporary": 1}),
    (8, {"local": 1, "worse": 1}),
    (1, {"local": 1, "worse": 1, "temporary": 1}),
    (4, {"far": 1}),
    (5, {"far": 1, "worse": 1}),
    (1, {"far": 1, "temporary": 1}),
    (4, {"checkpoints": 1}),
    (3, {"checkpoints": 1, "worse": 1}),
    (1, {"temporary": 1}),
    (2, {"temporary": 1, "worse": 1}),
    (2, {"copies": 2, "worse": 1}),
    (1, {"temporary": 1, "copies": 2}),
    (2, {"copies": 2}),
    (2, {"replicas": 3, "reliability": 0.95}),
    (1, {"replicas": 3, "worse": 1}),
    (1, {"speculate": 1}),
    (3, {"space": 1}),
    (1, {"shape": 0.7}),
    (1, {"shape": 12.0}),
)
"""How often each is drawn, and what it has."""
_FEW = 0.7
_SURELY = 0.6
"""In how many runs something strikes of what makes their world special."""
_GROUPS: Sequence[tuple[str, Sequence[Kind]]] = (
    ("checkpoints", (Kind.NOTICED,)),
    ("local", LOCAL),
    ("far", FAR),
    ("worse", FORGETTING),
    ("worse", FOR_EVER),
    ("worse", STRANGE),
    ("users", USERS),
    ("rules", (Kind.TASK,)),
    ("copies", (Kind.LONG,)),
    ("replicas", (Kind.LONG,)),
    ("speculate", (Kind.LONG,)),
)
"""Like faults, by what a world must have."""
_ONE = ("copies", "replicas")
"""Of which every world has one."""
_ALSO: Sequence[tuple[float, _World]] = (
    (0.35, {"users": 1}),
    (0.2, {"needs": 1}),
    (0.2, {"edited": 1}),
    (0.1, {"parts": 1}),
    (0.3, {"rules": 1}),
)
"""What worlds have besides, and in how many; not those at two places or within a limit."""


def mixed(first: VirtualScenario) -> VirtualScenario:
    """A run of the same seed in a world that is drawn."""
    chance = random.Random(f"world {first.seed}")
    (has,) = chance.choices([has for _, has in WORLDS], [share for share, _ in WORLDS])
    lanes = chance.choice([1, 2, 2, 3, 3, 4, 6])
    levels = chance.choice([1, 2, 3, 3, 4, 5])
    few = int(chance.random() < _FEW)
    also: dict[str, Any] = {}
    for share, more in _ALSO:
        is_drawn = chance.random() < share
        if is_drawn and not has.keys() & {"space", "copies", "far"}:
            also |= more
    if "rules" in also:  # which matter where tasks have to wait for their turn
        lanes += 3
    world = replace(first, lanes=lanes, levels=levels, few=few, **{**has, **also})
    return replace(world, surely=_sure(world, chance))


def _sure(world: VirtualScenario, chance: random.Random) -> str:
    """A fault that surely strikes there, of any group of those that make this world special;
    empty: none has to."""
    able = [group for field, group in _GROUPS if getattr(world, field) > (field in _ONE)]
    if not able or chance.random() > _SURELY:
        return ""
    return str(chance.choice([kind for kind in chance.choice(able) if may_strike(kind, world)]))
