"""The site of a decision: against trying every site and number of nodes one by one, and rule by
rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.unit.strategies.test_listing import workflows

from windrow.app.strategies import find_strategy
from windrow.forecast.base import Ints
from windrow.manager.core import Core
from windrow.manager.terms import Terms
from windrow.model import NodeShape, Task, Workflow
from windrow.model.hazard import Hazard
from windrow.model.site import Site
from windrow.strategies.base import Objective
from windrow.strategies.choosing import SiteOffer, Way, better_elsewhere, choose, frontier
from windrow.strategies.levels import Work, works

TERMS = Terms(margin=1.0, round_s=1)


def offers(
    workflow: Workflow, *rows: tuple[int, float, int, int], terms: Terms = TERMS
) -> list[SiteOffer]:
    """Sites by their nodes, speed, and wait: so long, and so much longer for each node."""
    sites = [
        Site.of(nodes, NodeShape(4), name=f"s{n}", speed=speed)
        for n, (nodes, speed, _, _) in enumerate(rows)
    ]
    core = Core(works(workflow, sites, np.ones((len(sites), len(workflow)), dtype=bool)), terms)

    def waits(base_s: int, slope_s: int) -> object:
        def told(nodes: Ints, requested_s: Ints) -> Ints:
            return base_s + slope_s * np.asarray(nodes) + np.asarray(requested_s) // 7

        return told

    names = [site.name for site in sites] if len(sites) > 1 else [""]
    return [
        SiteOffer(name, core.view(0, waits(row[2], row[3]), name))  # type: ignore[arg-type]
        for name, row in zip(names, rows, strict=True)
    ]


ROW = st.tuples(
    st.integers(1, 6), st.sampled_from([0.5, 1.0, 2.0, 3.0]), st.integers(0, 60), st.integers(0, 9)
)


@examples(60)
@given(workflows(mixed=0), st.lists(ROW, min_size=2, max_size=4))
def test_one_job_goes_where_trying_everything_says(
    workflow: Workflow, rows: list[tuple[int, float, int, int]]
) -> None:
    given_ = offers(workflow, *rows)
    name, decision = choose(find_strategy("one-job"), given_)
    ends: dict[tuple[int, int], int] = {}
    for site, (nodes, speed, base_s, slope_s) in enumerate(rows):
        for wide in range(1, nodes + 1):
            run_s = int(given_[site].view.work.run_s(np.arange(len(workflow)), wide, wide)[0])
            assert run_s >= max(1, np.ceil(workflow.runtime_s / speed).max())
            ends[site, wide] = base_s + slope_s * wide + run_s // 7 + run_s
    first = min(ends.values())
    (job,) = decision.jobs
    assert ends[int(name[1:]), job.nodes] == first
    assert job.site == name
    assert decision.candidates[0].site == name
    assert decision.candidates[0].makespan_s == first
    assert {one.site for one in decision.candidates if one.site} == {offer.name for offer in given_}


BAG = Workflow.from_tasks("bag", [Task(f"t{i}", 100) for i in range(8)])


def test_jobs_stay_with_their_data_unless_the_way_back_pays() -> None:
    near, far = offers(BAG, (2, 1.0, 300, 0), (2, 1.0, 0, 0))
    strategy = find_strategy("one-job")
    assert choose(strategy, [near, far])[0] == "s1"
    for data_s, where in (
        (50, "s1"),
        (130, "s1"),
        (200, "s0"),
    ):  # 300 s sooner, but there, and back, and a margin
        name, decision = choose(strategy, [near, replace(far, data_s=lambda _, s=data_s: s)])  # type: ignore[misc]
        assert name == where
        assert {one.site: one.data_s for one in decision.candidates if one.site}["s1"] == data_s


def test_work_that_is_longer_than_jobs_may_be_waits_again_for_each_further_job() -> None:
    """400 s of work where jobs have 100 s at most, and each waits for 60 s."""
    _, short = offers(BAG, (1, 2.0, 150, 0), (1, 2.0, 60, 0))
    waits = lambda nodes, _: 60 + 0 * nodes  # noqa: E731
    work = Work(BAG, short.view.work.expected_s, replace(short.view.work.site, max_request_s=100))
    limited = replace(short, view=replace(short.view, work=work, forecast=waits))
    job = limited.view.plan(0, 0, 1)
    assert job.run_s == 100  # 4 cores, twice as fast
    assert limited.end_s(job, 60) == 160
    longer = replace(job, run_s=400)
    assert limited.end_s(longer, 60) == 60 + 400 + 3 * 60
    assert short.end_s(longer, 60) == 460


def test_a_slow_site_loses_and_one_over_its_budget_is_no_candidate() -> None:
    strategy = find_strategy("one-job")
    quick, slow = offers(BAG, (2, 1.0, 0, 0), (2, 1.0, 20, 0))
    assert choose(strategy, [replace(quick, pace=3.0), slow])[0] == "s1"
    name, decision = choose(strategy, [replace(quick, node_s=100.0), slow])
    assert name == "s1"
    told = {one.site: one.note for one in decision.candidates}
    assert "max_node_hours" in told["s0"]
    name, decision = choose(strategy, [replace(quick, node_s=100.0), replace(slow, node_s=100.0)])
    assert not decision.jobs
    assert "max_node_hours" in decision.why
    full = replace(quick, room_bytes=10, data_bytes=lambda _: 11)
    name, decision = choose(strategy, [full, slow])
    assert (name, {one.site: one.note for one in decision.candidates}["s0"]) == (
        "s1",
        "no room for the files",
    )
    name, decision = choose(strategy, [quick], absent={"s1": "it is silent"})
    assert (name, decision.candidates[1].note) == ("s0", "it is silent")


@pytest.mark.parametrize(
    ("objective", "where"),
    [("makespan", "s0"), ("cost", "s1"), ("node-hours", "s0"), ("balanced", "s0")],
)
def test_what_decides_between_sites(objective: Objective, where: str) -> None:
    fast, cheap = offers(BAG, (2, 2.0, 0, 0), (2, 1.0, 0, 0))
    priced = [replace(fast, price=9.0), replace(cheap, price=1.0)]
    assert choose(find_strategy("one-job"), priced, objective)[0] == where


@examples(40)
@given(st.lists(ROW, min_size=2, max_size=3), st.integers(2, 3))
def test_of_several_jobs_each_goes_where_it_ends_first_within_the_caps(
    rows: list[tuple[int, float, int, int]], cap: int
) -> None:
    given_ = [replace(offer, view=replace(offer.view, cap=cap)) for offer in offers(BAG, *rows)]
    _, decision = choose(find_strategy("individual"), given_)
    tasks = [task for job in decision.jobs for task in job.tasks]
    assert len(tasks) == len(set(tasks)) == cap
    for name in {job.site for job in decision.jobs}:
        assert sum(job.site == name for job in decision.jobs) <= cap
    first = decision.jobs[0]
    ends = [
        base_s + slope_s + int(np.ceil(100 / speed)) * 8 // 7 for _, speed, base_s, slope_s in rows
    ]
    assert ends[int(first.site[1:])] <= min(ends) + 1  # requests are in whole seconds


def test_one_site_decides_as_ever() -> None:
    (alone,) = offers(BAG, (4, 1.0, 10, 1))
    strategy = find_strategy("glume")
    name, decision = choose(strategy, [alone])
    assert (name, decision) == ("", strategy.decide(alone.view))


def test_a_job_that_waits_moves_only_for_a_clear_gain() -> None:
    here = offers(BAG, (4, 1.0, 0, 0), (4, 1.0, 0, 0))[1:]
    tasks = np.ones(8, dtype=bool)
    (end_s,) = (offer.sized(tasks)[0] for offer in here)
    assert better_elsewhere(tasks, end_s + 61, here, 0) == ("s1", end_s)
    assert better_elsewhere(tasks, end_s + 60, here, 0) is None
    assert (
        better_elsewhere(tasks, end_s + 5000, here, 5000) is None
    )  # it would have nothing to do before
    assert better_elsewhere(tasks, end_s + 5000, [], 0) is None


SPOT = Hazard(preemption_rate=1 / 500)


@examples(40)
@given(workflows(mixed=0), st.lists(ROW, min_size=2, max_size=3), st.floats(10, 5000))
def test_losses_count_as_if_each_piece_were_tried_again_and_again(
    workflow: Workflow, rows: list[tuple[int, float, int, int]], every_s: float
) -> None:
    spot, *others = offers(workflow, *rows)
    spot = replace(spot, hazard=Hazard(preemption_rate=1 / every_s))
    _, decision = choose(find_strategy("one-job"), [spot, *others])
    told = {one.site: one for one in decision.candidates if one.site}
    safe = {
        one.site: one
        for one in choose(find_strategy("one-job"), [replace(spot), *others])[1].candidates
    }
    if told["s0"].makespan_s is None:
        return
    run_s, nodes, wait_s = told["s0"].run_s, told["s0"].nodes, told["s0"].wait_s
    piece_s = min(run_s, int(spot.view.work.expected_s.max()))
    tries = np.exp(piece_s / every_s)  # of each piece, until it is done
    law_s = run_s / piece_s * ((tries - 1) * every_s + (tries - 1) * wait_s)
    assert told["s0"].makespan_s == pytest.approx(min(2.0**40, wait_s + law_s), rel=1e-6, abs=1)
    assert told["s0"].makespan_s >= wait_s + run_s
    assert nodes == safe["s0"].nodes
    assert "risk of a loss" in told["s0"].note
    name = min(
        (one for one in told.values() if one.makespan_s is not None),
        key=lambda one: one.makespan_s or 0,
    ).site
    assert decision.jobs[0].site == name


def test_work_leaves_a_site_where_losses_cost_too_much_time() -> None:
    near, far = offers(BAG, (2, 1.0, 0, 0), (2, 1.0, 100, 0))
    strategy, often = find_strategy("one-job"), Hazard(preemption_rate=1 / 50)
    assert choose(strategy, [near, far])[0] == "s0"
    assert (
        choose(strategy, [replace(near, hazard=Hazard(preemption_rate=1 / 5000)), far])[0] == "s0"
    )
    assert choose(strategy, [replace(near, hazard=often), far])[0] == "s1"
    waiting, tasks = replace(near, hazard=often), np.ones(8, dtype=bool)
    job = near.view.plan(0, near.view.levels.last, 2)
    assert better_elsewhere(tasks, waiting.end_s(job, 57), [far], 0) is not None
    assert better_elsewhere(tasks, near.end_s(job, 57), [far], 0) is None


@examples(40)
@given(
    st.lists(
        st.tuples(ROW, st.integers(0, 3), st.sampled_from([0, 1 / 900, 1 / 9000])),
        min_size=2,
        max_size=3,
    )
)
def test_nothing_on_the_frontier_is_beaten_and_nothing_beyond_it_is_left_out(
    rows: list[tuple[tuple[int, float, int, int], int, float]],
) -> None:
    given_ = [
        replace(offer, price=price, hazard=Hazard(preemption_rate=rate))
        for offer, (_, price, rate) in zip(
            offers(BAG, *(row for row, _, _ in rows)), rows, strict=True
        )
    ]
    ways = frontier(find_strategy("one-job"), given_)

    def figures(way: Way) -> tuple[float, float, float]:
        return way.end_s, way.price, -way.chance

    alone = [frontier(find_strategy("one-job"), [offer]) for offer in given_]
    for (single,) in alone:  # one job is at one site: there is nothing else to choose
        beaten = [
            w for w in alone if w[0] != single and all(np.array(figures(w[0])) <= figures(single))
        ]
        beaten = [w for w in beaten if figures(w[0]) != figures(single)]
        assert (single in ways) == (not beaten)
    assert len(ways) == len(set(ways))
    assert [way.end_s for way in ways] == sorted(way.end_s for way in ways)


def test_a_bag_of_tasks_may_use_cheap_and_safe_sites_together() -> None:
    safe, spot = offers(BAG, (2, 1.0, 0, 0), (2, 1.0, 0, 0))
    ways = frontier(
        find_strategy("individual"),
        [replace(safe, price=3.0), replace(spot, price=1.0, hazard=SPOT)],
    )
    assert {way.sites for way in ways} == {("s0",), ("s0", "s1"), ("s1",)}
    by_sites = {way.sites: way for way in ways}
    assert by_sites[("s1",)].price < by_sites[("s0", "s1")].price < by_sites[("s0",)].price
    assert by_sites[("s0",)].chance == 1
