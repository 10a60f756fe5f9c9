"""Worlds of all kinds in one campaign: each seed draws one, with its sizes and what can go wrong.

Law: whatever a single world can show is shown by some seed, so that one command looks for faults of
the code of which no one knows yet where they are.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from windrow.trials.virtual.drawn import VirtualScenario

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


def mixed(first: VirtualScenario) -> VirtualScenario:
    """A run of the same seed in a world that is drawn."""
    chance = random.Random(f"world {first.seed}")
    (has,) = chance.choices([has for _, has in WORLDS], [share for share, _ in WORLDS])
    lanes = chance.choice([1, 2, 2, 3, 3, 4, 6])
    levels = chance.choice([1, 2, 3, 3, 4, 5])
    few = int(chance.random() < _FEW)
    return replace(first, lanes=lanes, levels=levels, few=few, **has)
