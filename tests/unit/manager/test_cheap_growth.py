"""One task more costs a run the same, however many it has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.steps import steps
from tests.unit.manager.test_growth import added, core_of

from windrow.model import File, Task, Workflow, WorkflowError
from windrow.story import events as e
from windrow.story.story import RunStory


def large(tasks: int) -> Workflow:
    first = Task("a", 5, outputs=("a.txt",))
    more = (Task(f"x{i}", 5, parents=("a",), outputs=(f"x{i}",)) for i in range(tasks))
    return Workflow.from_tasks("large", [first, *more])


def cost_of_one(tasks: int) -> int:
    """Instructions of Python that one addition takes, in core and story."""
    core = core_of(large(tasks))
    story = RunStory.of(large(tasks), ())
    core.handle(e.RunBegan(0))

    def add(number: int) -> None:
        event = added(
            Task(f"n{number}", 1, parents=("x1",), inputs=("x1",), outputs=(f"n{number}",)),
            name=str(number),
        )
        core.extended(event)
        core.handle(event)
        story.take_in(event, 50.0)

    add(0)  # names are numbered once
    return steps(lambda: add(1))


@pytest.mark.slow
def test_an_addition_costs_the_same_in_a_large_run() -> None:
    assert cost_of_one(4000) < 1.1 * cost_of_one(40)


def test_a_workflow_can_grow_in_two_ways() -> None:
    base = large(3)
    one = base.extended([Task("p", 1, parents=("x0",), outputs=("p.txt",))])
    other = base.extended([Task("q", 1, parents=("x0",)), Task("p", 1, outputs=("q.txt",))])
    assert (one.number("p"), other.number("p")) == (4, 5)
    assert (one.maker_of("p.txt"), other.maker_of("p.txt"), base.maker_of("p.txt")) == (
        "p",
        None,
        None,
    )
    with pytest.raises(KeyError):
        base.number("p")
    with pytest.raises(WorkflowError, match="given more than once: p"):
        one.extended([Task("p", 1)])
    assert base.extended([Task("p", 1)]).ids[-1] == "p", "also after one that was refused"


@given(st.data())
def test_what_grew_step_by_step_is_what_was_made_at_once(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 12))
    tasks = []
    for i in range(count):
        parents = data.draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else set()
        made = data.draw(st.booleans())
        tasks.append(
            Task(
                f"t{i}",
                data.draw(st.integers(0, 9)),
                parents=tuple(f"t{p}" for p in sorted(parents)),
                inputs=tuple(f"f{p}" for p in sorted(parents)),
                outputs=(f"f{i}",) if made else (),
                cores=data.draw(st.integers(1, 3)),
                counts=(("gpus", 1),) if data.draw(st.booleans()) else (),
                command=("run", str(i)),
            )
        )
    files = [File(f"f{i}", i, keep=data.draw(st.sampled_from([None, False]))) for i in range(count)]
    first = data.draw(st.integers(1, count))
    grown = Workflow.from_tasks("w", tasks[:first], files)
    while first < count:
        more = data.draw(st.integers(1, count - first))
        grown = grown.extended(tasks[first : first + more])
        first += more
    whole = Workflow.from_tasks("w", tasks, files)
    assert list(grown) == list(whole)
    assert grown.files == whole.files
    assert grown.levels.tolist() == whole.levels.tolist()
    assert grown.order.tolist() == whole.order.tolist()
    assert [a.tolist() for a in (grown.children.start, grown.children.index)] == [
        a.tolist() for a in (whole.children.start, whole.children.index)
    ]
    assert grown.has_temporary == whole.has_temporary
    assert [grown.maker(f) for f in range(len(files))] == [
        whole.maker(f) for f in range(len(files))
    ]
