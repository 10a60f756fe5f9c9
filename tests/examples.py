"""How many random cases the property tests try: one profile for all of them.

By default each tries `EXAMPLES`, the same ones every time, however long one takes.
`WINDROW_FUZZ=20` tries twenty times `FRESH`, new ones each time; `make prove` does. A test that
needs more than the others says so: `@examples(500)`.
"""

from __future__ import annotations

import os
from typing import TypeVar

from hypothesis import HealthCheck, settings

T = TypeVar("T")
EXAMPLES, FRESH = 20, 30
FUZZ = int(os.environ.get("WINDROW_FUZZ") or 0)

settings.register_profile(
    "windrow",
    max_examples=FRESH * FUZZ if FUZZ else EXAMPLES,
    derandomize=not FUZZ,
    deadline=None,
    # A busy machine is not a fault of a test, and folders of a test's own may be shared by its
    # cases.
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("windrow")


def some(*values: T) -> tuple[T, ...]:
    """All of these ways to do the same where `WINDROW_FULL` is set, as `make prove` does; else the
    first."""
    return values if os.environ.get("WINDROW_FULL") else values[:1]


def examples(count: int) -> settings:
    """This number of cases instead of `FRESH`, times `WINDROW_FUZZ`; by default a third of them."""
    return settings(max_examples=count * FUZZ if FUZZ else max(8, count // 3))
