"""Within a limit: never stuck, never above it, and refused only what no order could do."""

from dataclasses import replace
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from windrow.storage.admission import ORDERS, Admission
from windrow.storage.sequence import Demand, FileUse


@st.composite
def demands(draw: st.DrawFn, most: int = 14) -> Demand:
    count = draw(st.integers(1, most))
    width = draw(st.sampled_from([1, 2, 3, 99]))  # how far back parents are
    parents: dict[int, set[int]] = {}
    files: list[FileUse] = []
    for task in range(count):
        near = list(range(max(0, task - width), task))
        parents[task] = set(draw(st.lists(st.sampled_from(near), max_size=3))) if near else set()
    for maker in (None, *parents):
        for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
            later = [reader for reader in parents if maker is None or maker in parents[reader]]
            readers = (
                draw(st.lists(st.sampled_from(later), unique=True, max_size=4)) if later else []
            )
            keep = draw(st.sampled_from([False, False, True])) and (
                maker is not None or not readers
            )
            if maker is not None or readers:
                files.append(
                    FileUse(
                        f"f{len(files)}",
                        draw(st.integers(0, 9)),
                        maker,
                        tuple(readers),
                        keep,
                        draw(st.booleans()),
                    )
                )
    return Demand(parents, files, draw(st.integers(0, 3)))


def least(demand: Demand) -> int:
    """The smallest peak over all orders."""
    tasks = list(demand.parents)
    found = []
    for order in permutations(tasks):
        place = {task: at for at, task in enumerate(order)}
        if any(place[p] > place[task] for task in tasks for p in demand.parents[task]):
            continue
        peak = now = demand.held + sum(f.size for f in demand.files if f.maker is None)
        for at, task in enumerate(order):
            now += sum(f.size for f in demand.files if f.maker == task)
            peak = max(peak, now)
            for f in demand.files:
                users = {*f.readers, *(() if f.maker is None else (f.maker,))}
                now -= (
                    f.size
                    if not f.keep and task in users and all(place[u] <= at for u in users)
                    else 0
                )
        found.append(peak)
    return min(found)


@examples(60)
@given(demands(6))
def test_the_smallest_space_is_the_smallest(demand: Demand) -> None:
    assert demand.peak(demand.order()) == least(demand)


@examples(200)
@given(demands(), st.integers(0, 20), st.sampled_from(ORDERS), st.data())
def test_within_a_limit_all_tasks_run_to_their_end(
    demand: Demand, more: int, rule: str, data: st.DataObject
) -> None:
    """Watched by a second account: what is there, by the law told once more."""
    smallest = Admission(demand, 0, rule).smallest
    limit = smallest + more
    space = Admission(demand, limit, rule)
    nodes = data.draw(st.integers(1, 5))
    waits = {task: len(parents) for task, parents in demand.parents.items()}
    done, begun, there = set[int](), set[int](), {f.name for f in demand.files if f.maker is None}
    for task in demand.parents:
        if not waits[task]:
            space.offer(task)
    size = {f.name: f.size for f in demand.files}
    while len(done) < len(demand.parents):
        for task in space.candidates():
            if len(space.running) < nodes and space.admit(task):
                begun.add(task)
                there |= {f.name for f in demand.files if f.maker == task}
        used = demand.held + sum(size[name] for name in there)
        assert used == space.used <= limit
        assert space.running, "stuck"
        task = data.draw(st.sampled_from(sorted(space.running)))
        done.add(task)
        gone = set(space.finish(task))
        open_ = {name for name in there for f in demand.files if f.name == name and not f.keep}
        needed = {f.name for f in demand.files if not {f.maker, *f.readers} <= {*done, None}}
        assert gone == open_ - needed
        there -= gone
        for child in demand.children[task]:
            waits[child] -= 1
            if not waits[child]:
                space.offer(child)


def chains(width: int, sizes: list[int], keep_last: bool = True) -> Demand:
    """Pipelines alike, numbered stage by stage."""
    depth = len(sizes)
    parents = {
        d * width + w: {(d - 1) * width + w} if d else set()
        for d in range(depth)
        for w in range(width)
    }
    files = [
        FileUse(
            f"{d}-{w}",
            sizes[d],
            d * width + w,
            ((d + 1) * width + w,) if d + 1 < depth else (),
            d + 1 == depth and keep_last,
        )
        for d in range(depth)
        for w in range(width)
    ]
    return Demand(parents, files)


def test_pipelines_are_admitted_so_that_each_can_go_to_its_end() -> None:
    """Two volumes each while they run: with room for five, two go side by side, and none waits for
    the others."""
    demand = chains(6, [10, 10, 10, 1])
    space = Admission(demand, 50)
    assert space.smallest == 26 - 1
    for task in range(6):
        space.offer(task)
    assert [task for task in space.candidates() if space.admit(task)] == [0, 1]


def test_many_pipelines_take_little_time() -> None:
    demand = chains(2000, [10, 10, 1])
    space = Admission(demand, 2200)
    ready = list(range(2000))
    for task in ready:
        space.offer(task)
    done = 0
    while done < 6000:
        for task in space.candidates():
            if len(space.running) >= 8 or not space.admit(task):
                break
        task = min(space.running)
        space.finish(task, [10 if task < 4000 else 1])
        done += 1
        if task < 4000:
            space.offer(task + 2000)
    assert space.used == 2000


@examples(200)
@given(demands(), st.integers(0, 20), st.sampled_from(ORDERS), st.data())
def test_the_limit_is_exceeded_by_no_more_than_one_task_of_unknown_outputs(
    demand: Demand, more: int, rule: str, data: st.DataObject
) -> None:
    """Files of a kind are equally large, and nothing is known of them: what is known in the end
    holds for all."""
    kinds = [data.draw(st.integers(0, 3)) for _ in demand.files]
    size = [data.draw(st.integers(0, 9), label=f"kind {k}") for k in range(4)]
    files = [
        f if f.maker is None else f._replace(size=0, kind=kind, is_known=False)
        for f, kind in zip(demand.files, kinds, strict=True)
    ]
    demand = replace(demand, files=files)
    space = Admission(demand, demand.there + more, rule)
    waits = {task: len(parents) for task, parents in demand.parents.items()}
    known, there = set[int](), demand.there
    for task in demand.parents:
        if not waits[task]:
            space.offer(task)
    while True:
        was = there
        for task in space.candidates():
            if space.admit(task):
                there += sum(size[kinds[f]] for f in demand.made[task])
        if not space.running:
            break
        unknown = [
            task for task in space.running if any(kinds[f] not in known for f in demand.made[task])
        ]
        assert not unknown or len(space.running) == 1, "it runs by itself"
        assert unknown or there <= space.limit or (was > space.limit and len(space.running) == 1)
        task = data.draw(st.sampled_from(sorted(space.running)))
        known |= {kinds[f] for f in demand.made[task]}
        freed = set(space.finish(task, [size[kinds[f]] for f in demand.made[task]]))
        gone = [(f, kind) for f, kind in zip(files, kinds, strict=True) if f.name in freed]
        there -= sum(f.size if f.maker is None else size[kind] for f, kind in gone)
        assert there == space.used
        for child in demand.children[task]:
            waits[child] -= 1
            if not waits[child]:
                space.offer(child)


def test_a_kind_that_turned_out_larger_runs_one_at_a_time_and_is_expected_to_be_that_large() -> (
    None
):
    files = [FileUse(f"f{task}", 1, task, (), keep=True, kind=0) for task in range(6)]
    space = Admission(Demand({task: [] for task in range(6)}, files), 25)
    for task in range(6):
        space.offer(task)
    assert space.admit(0)
    space.finish(0, [10])
    assert space.admit(1)
    assert not space.admit(2), "what was wrong once may be wrong again"
    space.finish(1, [10])
    assert not any(space.admit(task) for task in range(2, 6)), "30 MB would be there"


def test_where_the_limit_is_exceeded_what_takes_away_more_than_it_makes_goes_on() -> None:
    """Two pipelines whose first files are ten times as large as stated: both are there."""
    files = [
        FileUse("a0", 1, 0, (2,), keep=False),
        FileUse("a1", 1, 1, (3,), keep=False),
        FileUse("b0", 1, 2),
        FileUse("b1", 1, 3),
    ]
    space = Admission(Demand({0: [], 1: [], 2: [0], 3: [1]}, files), 6)
    for task in (0, 1):
        space.offer(task)
        assert space.admit(task)
    for task in (0, 1):
        space.finish(task, [10])
        space.offer(task + 2)
    assert space.used == 20
    assert space.admit(2)
    assert not space.admit(3), "one step at a time"
    assert space.finish(2, [1]) == ["a0"]
    assert space.admit(3)
    assert space.finish(3, [1]) == ["a1"]
    assert space.used == 2
