"""The batch system's own word: few questions, honest about what it does not know."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.forecast.base import UNKNOWN_S, Ints, Prediction, predict
from windrow.forecast.system import LADDER_S, System, rung_s
from windrow.queues.port import QueueError, SpecError

FALLBACK_S = 77_777


class Controller:
    """A batch system that answers by a rule, notes who asked what and when, and can be made to
    fail."""

    def __init__(
        self, rule: Callable[[int, int], float | None] = lambda nodes, _: nodes * 10.0
    ) -> None:
        self.now_s = 1000.0
        self.rule = rule
        self.probes: list[tuple[float, int, int]] = []
        self.error: Exception | None = None

    def clock(self) -> float:
        return self.now_s

    def probe(self, nodes: int, walltime_s: int) -> float | None:
        self.probes.append((self.now_s, nodes, walltime_s))
        if self.error is not None:
            raise self.error
        wait = self.rule(nodes, walltime_s)
        return None if wait is None else self.now_s + wait


class Constant:
    """The one who is asked when the system has no answer."""

    name = "constant"

    def waits_s(self, nodes: Ints, requested_s: Ints) -> Ints:
        assert nodes.shape == requested_s.shape
        return np.full(nodes.shape, FALLBACK_S, dtype=np.int64)


def ask(system: System, *jobs: tuple[int, int]) -> list[int]:
    nodes, requested = np.array(jobs).T
    return [int(wait) for wait in system.waits_s(nodes, requested)]


def system_of(controller: Controller, **options: float) -> System:
    return System(controller, controller.clock, Constant(), **options)  # type: ignore[arg-type]


def test_the_first_answer_serves_while_it_is_fresh() -> None:
    controller = Controller()
    system = system_of(controller, keep_s=300)
    assert ask(system, (4, 3600)) == [40]
    controller.now_s += 15
    assert ask(system, (4, 3500)) == [25]  # the same rung; the start it named has come closer
    assert [probe[1:] for probe in controller.probes] == [(4, 3600)]
    controller.now_s += 300
    assert ask(system, (4, 3600)) == [40]
    assert len(controller.probes) == 2


def test_however_much_is_asked_probes_keep_their_distance() -> None:
    controller = Controller()
    system = system_of(controller, every_s=10)
    for second in range(100):
        controller.now_s = 1000.0 + second
        ask(system, *((n, 600 * t) for n in range(1, 40) for t in range(1, 40)))
    times = [at for at, _, _ in controller.probes]
    assert len(times) == 10
    assert min(np.diff(times)) >= 10


def test_it_knows_what_it_does_not_know() -> None:
    controller = Controller()
    system = system_of(controller)
    assert ask(system, (8, 600), (2, 600), (4, 600)) == [FALLBACK_S, 20, FALLBACK_S]
    controller.now_s += 10
    assert ask(system, (8, 600), (2, 600), (4, 600)) == [
        80,
        10,
        45,
    ]  # the corner is probed next, the rest follows
    known = system.known_s(np.array([1, 8, 9]), np.array([600, 601, 600]))
    assert known.tolist() == [UNKNOWN_S] * 3
    assert [probe[1:] for probe in controller.probes] == [(2, 600), (8, 600)]


@given(
    st.lists(st.tuples(st.integers(1, 64), st.sampled_from(LADDER_S)), min_size=1, max_size=12),
    st.integers(1, 12),
)
def test_interpolation_stays_between_what_was_told(
    jobs: list[tuple[int, int]], probes: int
) -> None:
    """For waits that grow with size, every answer lies between those of smaller and larger probed
    jobs."""
    controller = Controller(lambda nodes, walltime: float(nodes * 100 + walltime // 60))
    system = system_of(controller, every_s=0)
    nodes, requested = np.array(jobs).T
    for _ in range(probes - 1):
        system.ask(nodes, requested)
    waits = system.known_s(nodes, requested).tolist()  # one probe more
    told = {(n, w): controller.rule(n, w) for _, n, w in controller.probes}
    assert len(told) == min(probes, len(set(jobs)))
    for (n, w), wait in zip(jobs, waits, strict=True):
        below = [told[p] for p in told if p[0] <= n and p[1] <= w]
        above = [told[p] for p in told if p[0] >= n and p[1] >= w]
        assert (wait == UNKNOWN_S) == (not below or not above)
        if wait != UNKNOWN_S:
            assert max(v or 0 for v in below) <= wait <= min(v or 0 for v in above)
        if (n, w) in told:
            assert wait == told[n, w]


def test_probes_go_where_least_is_known() -> None:
    controller = Controller()
    system = system_of(controller, every_s=0)
    jobs = np.array([1, 2, 4, 8, 16]), np.array([3600] * 5)
    while system.ask(*jobs):
        pass
    assert [n for _, n, _ in controller.probes] == [1, 16, 4, 2, 8]


def test_failures_make_it_back_off_and_success_forgives() -> None:
    controller = Controller()
    controller.error = QueueError("rate limit")
    system = system_of(controller, every_s=10)
    for _ in range(2000):
        assert ask(system, (1, 60)) == [FALLBACK_S]
        controller.now_s += 1
    gaps = np.diff([at for at, _, _ in controller.probes]).tolist()
    assert gaps == [20, 40, 80, 160, 320, 640]
    controller.error = None
    controller.now_s += 3600
    assert ask(system, (1, 60)) == [10]
    controller.now_s += 10
    ask(system, (2, 60))
    assert np.diff([at for at, _, _ in controller.probes])[-1] == 10


def test_pauses_are_bounded_and_a_clock_set_back_does_not_freeze_it() -> None:
    controller = Controller()
    controller.error = QueueError("down for days")
    system = system_of(controller, every_s=10)
    for _ in range(100):
        controller.now_s += 3600
        ask(system, (1, 60))
    assert len(controller.probes) == 100
    controller.now_s -= 86400
    ask(system, (1, 60))
    assert len(controller.probes) == 101


@pytest.mark.parametrize("answer", ["none", "refusal"])
def test_jobs_that_the_system_says_nothing_of(answer: str) -> None:
    controller = Controller(lambda nodes, _: None if nodes == 8 else 5.0)
    system = system_of(controller, every_s=10)
    if answer == "refusal":
        controller.rule = lambda nodes, _: _refuse() if nodes == 8 else 5.0
    assert ask(system, (8, 60)) == [FALLBACK_S]
    controller.now_s += 10
    assert ask(system, (8, 60), (1, 60)) == [FALLBACK_S, 5]
    assert [n for _, n, _ in controller.probes] == [
        8,
        1,
    ]  # it was not asked again about the one it refused


def _refuse() -> float:
    raise SpecError("more nodes than the partition has")


def test_only_its_own_word_is_kept_as_its_prediction() -> None:
    controller = Controller()
    found = predict(system_of(controller), np.array([2, 4]), np.array([600, 600]), controller.now_s)
    assert found == [
        Prediction("system", 2, 600, 20, controller.now_s),
        None,
    ]  # 4 nodes: the fallback's word, not its own


def test_a_start_in_the_past_means_now() -> None:
    assert ask(system_of(Controller(lambda *_: -30.0)), (1, 60)) == [0]


@given(st.integers(1, 10**8))
def test_rungs(requested_s: int) -> None:
    rung = rung_s(requested_s)
    assert rung >= requested_s
    assert rung_s(rung) == rung
    assert rung in LADDER_S or rung % LADDER_S[-1] == 0


def test_nothing_asked_nothing_probed() -> None:
    controller = Controller()
    none = np.zeros(0, dtype=np.int64)
    assert system_of(controller).waits_s(none, none).tolist() == []
    assert controller.probes == []
