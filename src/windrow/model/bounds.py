"""How large a number from outside may be. One place, so that every option and every file is held to
the same limits.

The limits are far above anything real and low enough for arithmetic in 64-bit integers: the longest
time on the largest machine, summed over a million tasks as a float or over a hundred jobs as an
integer, is still exact.
"""

from __future__ import annotations

NODES_MAX = 10_000_000
"""Nodes (or processors) of a machine, and of a job."""

COUNT_MAX = 1_000_000
"""Cores of a node, jobs in a queue, tasks of a workflow, and other things that are counted."""

DURATION_S_MAX = 10**9
"""The longest run time or option that is a time: 31 years."""

LOG_TIME_S_MAX = 2**36
"""The longest time in a log, whose requests may be a batch system's word for `unlimited`, and whose
unit may be less than a second."""

SIZE_BYTES_MAX = 2**53
"""The largest memory or file: 9 PB."""

LOG_JOBS_MAX = 20_000_000
"""Jobs of a generated log."""

NAME_BYTES_MAX = 255
"""The longest name of a file or folder."""

SEED_MAX = 2**63 - 1
