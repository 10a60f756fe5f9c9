"""How a machine is used, computed by hand; and what figure 11 and a thesis say of real logs."""

from pathlib import Path

import numpy as np
import pytest

from windrow.formats.swf.reader import read_log
from windrow.model import Log
from windrow.model.usage import accuracy_of, usage_of

TINY = Log(
    name="tiny",
    machine_nodes=10,
    job=np.array([1, 2]),
    submit_s=np.array([100, 100 + 86_400]),
    nodes=np.array([2, 4]),
    requested_s=np.array([7200, 3600]),
    run_s=np.array([3600, 4800]),
    user=np.array([0, 0]),
)
"""Two jobs a day apart, of which the second runs until it is killed."""


def test_means_and_loads_are_those_computed_by_hand() -> None:
    usage = usage_of(TINY)
    assert (usage.nodes, usage.jobs_per_day, usage.width, usage.run_h) == (10, 2, 3, 1)
    assert usage.request_node_h == 4
    assert usage.actual_load == pytest.approx(6 / 240)
    assert usage.requested_load == pytest.approx(8 / 240)


def test_requests_are_compared_with_what_ran() -> None:
    known = accuracy_of(TINY)
    assert known.over_request_h == 0.5
    assert (known.mean, known.median) == (0.75, 0.75)


@pytest.mark.slow
def test_users_of_one_real_machine_know_less_than_those_of_another(logs: Path) -> None:
    """As the GLUME thesis has it, which prints 1.01 h too many on KTH, and 3.34 h on SDSC."""
    names = ("KTH-SP2-1996-2.1-cln.swf.gz", "SDSC-SP2-1998-4.2-cln.swf.gz")
    kth, sdsc = (accuracy_of(read_log(logs / name)) for name in names)
    assert sdsc.over_request_h > 1.5 * kth.over_request_h
    assert sdsc.median < kth.median
