"""Until when files that are not kept are needed, against the law told once more, slowly."""

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from windrow.model import File, Task, Workflow
from windrow.storage.lifetimes import Lifetimes


@st.composite
def graphs(draw: st.DrawFn) -> Workflow:
    tasks: list[Task] = []
    for n in range(draw(st.integers(1, 6))):
        known = [name for task in tasks for name in task.outputs]
        reads = draw(st.lists(st.sampled_from(known), max_size=3, unique=True)) if known else []
        names = [f"{name}/part" if draw(st.booleans()) else name for name in reads]
        parents = tuple({task.id for task in tasks for name in reads if name in task.outputs})
        outputs = tuple(f"f{n}-{k}" for k in range(draw(st.integers(0, 2))))
        tasks.append(
            Task(f"t{n}", 1, parents=parents, inputs=tuple(dict.fromkeys(names)), outputs=outputs)
        )
    files = [
        File(name, keep=draw(st.sampled_from([False, None])))
        for task in tasks
        for name in task.outputs
    ]
    return Workflow.from_tasks("g", tasks, files)


@examples(60)
@given(graphs(), st.data())
def test_a_file_is_due_when_all_who_touch_it_are_done(
    workflow: Workflow, data: st.DataObject
) -> None:
    lives, done, gone = Lifetimes.of(workflow), set[int](), set[str]()
    for _ in range(12):
        task = data.draw(st.integers(0, len(workflow) - 1))
        if task in done:
            done.discard(task)
            lives.undone(task)
            gone -= set(workflow.task(task).outputs)
        else:
            done.add(task)
            lives.done(task)
        if data.draw(st.booleans()):
            gone |= set(lives.due)
            lives.deleted(tuple(lives.due))
        needed = {
            name
            for n, one in enumerate(workflow)
            if n not in done
            for name in (
                *one.outputs,
                *one.inputs,
                *(file.removesuffix("/part") for file in one.inputs),
            )
        }
        temporary = {name for one in workflow for name in one.outputs} & {
            f.id for f in workflow.files if f.keep is False
        }
        assert set(lives.due) == temporary - needed - gone
        assert lives.gone == gone
        again = Lifetimes.of(workflow, done, lives)
        assert (set(again.due), again.gone) == (set(lives.due), lives.gone)


def test_a_folder_in_which_others_write_stays() -> None:
    tasks = [Task("a", 1, outputs=("d",)), Task("b", 1, parents=("a",), outputs=("d/x",))]
    lives = Lifetimes.of(
        Workflow.from_tasks("w", tasks, [File("d", keep=False), File("d/x", keep=False)]), (0, 1)
    )
    assert set(lives.due) == {"d/x"}
