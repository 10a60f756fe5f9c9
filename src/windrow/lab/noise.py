"""What tasks really take in a trial: their estimates, each times a chance factor.

Law 1: the factor is log-normal with median 1. A task is as likely to take longer than its estimate as shorter, which is
what an estimate is; the mean lies above it, by a factor of exp(noise^2 / 2), since times have a long tail to one side.
Law 2: comparisons and campaigns draw alike: the same name, seed and submission time give the same times everywhere.
"""

from __future__ import annotations

import hashlib

import numpy as np

from windrow.lab.trial import Ints
from windrow.model import Workflow
from windrow.strategies import whole_seconds


def task_times(workflow: Workflow, name: str, noise: float, seed: int, submit_s: int) -> Ints:
    """What the tasks will take, in whole seconds: the same for every strategy, so that trials can be compared."""
    expected = whole_seconds(workflow)
    if noise == 0:
        return expected
    digest = hashlib.sha256(f"{name}/{seed}/{submit_s}".encode()).digest()
    factor = np.exp(noise * np.random.default_rng(int.from_bytes(digest, "big")).standard_normal(len(workflow)))
    drawn: Ints = np.maximum(1, np.ceil(expected * factor)).astype(np.int64)
    return drawn
