"""Sessions: what they change of a log, and what they leave."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import UserError
from windrow.model import Log
from windrow.recipes.logs.models import LOG_MODELS, generate_log


def generated(model: str, jobs: int = 3000, **parameters: object) -> Log:
    values = {name: str(value) for name, value in parameters.items()}
    return generate_log(model, seed=3, jobs=jobs, parameters=values)


def rows(log: Log) -> list[tuple[int, ...]]:
    return sorted(zip(*(c.tolist() for c in (log.nodes, log.run_s, log.requested_s)), strict=True))


def sizes_of(log: Log) -> np.ndarray:
    """How many jobs come at each moment at which some come."""
    return np.unique(log.submit_s, return_counts=True)[1]


@given(
    st.sampled_from(list(LOG_MODELS)),
    st.integers(1, 200),
    st.floats(1, 20),
    st.integers(20, 300),
)
def test_sessions_only_move_jobs_in_time(model: str, jobs: int, mean: float, most: int) -> None:
    alone = generated(model, jobs)
    log = generated(model, jobs, session=mean, session_most=most)
    assert rows(log) == rows(alone)
    assert log.submit_s[0] == 0
    assert (np.diff(log.submit_s) >= 0).all()
    assert set(log.submit_s.tolist()) <= set(alone.submit_s.tolist())


def test_a_session_has_one_user_and_jobs_that_are_alike() -> None:
    log = generated("lublin", session=8, session_most=100)
    assert log.submit_s[-1] == generated("lublin").submit_s[-1]
    moments = np.split(np.arange(len(log)), np.cumsum(sizes_of(log))[:-1])
    large = [each for each in moments if len(each) >= 10]
    assert all(len(set(log.user[each].tolist())) == 1 for each in large)
    inside = np.mean([np.log2(log.nodes[each]).std() for each in large])
    assert inside < 0.6 * np.log2(log.nodes).std()


@pytest.mark.parametrize(("mean", "most"), [(2, 400), (8, 400), (40, 2000)])
def test_sessions_are_as_large_as_set(mean: int, most: int) -> None:
    sizes = sizes_of(generated("ada", 60_000, session=mean, session_most=most))
    assert sizes.max() <= most
    assert sizes.mean() == pytest.approx(mean, rel=0.15)


def test_one_job_each_is_the_log_without_sessions() -> None:
    alone, same = generated("rtc", 500), generated("rtc", 500, session=1)
    assert np.array_equal(alone.submit_s, same.submit_s)
    assert np.array_equal(alone.user, same.user)


def test_a_mean_above_the_most_is_refused() -> None:
    with pytest.raises(UserError, match="10 jobs on average cannot have at most 5"):
        generated("lublin", 10, session=10, session_most=5)
