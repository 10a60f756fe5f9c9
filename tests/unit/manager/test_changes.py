"""Which finished tasks stay finished when a workflow changes: by drawn workflows and edits, against
the definition."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.app.changes import Changes, changes
from windrow.model import Runnable, Step, Task, Workflow
from windrow.report.run.explanation import change_lines


class Drawn:
    """A workflow as a table that can be edited: a row for each task, by id."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.rows: dict[str, dict[str, object]] = {}
        for number in range(chance.randint(1, 9)):
            self.add(f"t{number}")

    def add(self, name: str) -> None:
        earlier = list(self.rows)
        reads = self.chance.sample(earlier, self.chance.randint(0, min(2, len(earlier))))
        after = self.chance.sample(earlier, self.chance.randint(0, min(1, len(earlier))))
        outside = ("data",) if self.chance.random() < 0.3 else ()
        self.rows[name] = {
            "reads": reads,
            "after": after,
            "outside": outside,
            "command": "x",
            "env": "",
            "dir": "/w",
        }

    def edited(self) -> Drawn:
        other = Drawn(random.Random(0))
        other.chance, other.rows = self.chance, {name: dict(row) for name, row in self.rows.items()}
        for name in list(other.rows):
            row, kind = other.rows[name], self.chance.random()
            if kind < 0.1:
                row["command"] = "y"
            elif kind < 0.15:
                row["env"] = "v"
            elif kind < 0.2:
                row["dir"] = "/elsewhere"
            elif kind < 0.25:
                row["after"] = []
            elif kind < 0.3:
                row["reads"] = []
            elif (
                kind < 0.35
                and len(other.rows) > 1
                and not any(name in other.parents(n) for n in other.rows)
            ):
                del other.rows[name]
        if self.chance.random() < 0.3:
            other.add("new")
        order = list(other.rows)
        if self.chance.random() < 0.3:
            self.chance.shuffle(order)  # numbers change; ids count
        other.rows = {name: other.rows[name] for name in order}
        return other

    def parents(self, name: str) -> set[str]:
        return {*self.rows[name]["reads"], *self.rows[name]["after"]}  # type: ignore[misc]

    def ancestors(self, name: str) -> set[str]:
        found = self.parents(name)
        for parent in list(found):
            found |= self.ancestors(parent)
        return found

    def runnable(self) -> Runnable:
        tasks, steps = [], []
        for name, row in self.rows.items():
            inputs = [f"{self.rows[r]['dir']}/{r}.out" for r in row["reads"]]  # type: ignore[attr-defined]
            inputs += [f"/w/{file}" for file in row["outside"]]  # type: ignore[attr-defined]
            outputs = (f"{row['dir']}/{name}.out",)
            tasks.append(
                Task(
                    name,
                    1.0,
                    parents=tuple(sorted(self.parents(name))),
                    inputs=tuple(inputs),
                    outputs=outputs,
                )
            )
            env = (("V", str(row["env"])),) if row["env"] else ()
            steps.append(Step((str(row["command"]),), str(row["dir"]), env))
        return Runnable(Workflow.from_tasks("drawn", tasks), tuple(steps))


@pytest.mark.slow
@given(st.randoms(use_true_random=False))
def test_what_runs_again_is_what_the_definition_says(chance: random.Random) -> None:
    """A task stays finished where it, and all that it depends on, had finished, is the same, and
    read the same."""
    old = Drawn(chance)
    done: set[str] = set()
    for name in old.rows:
        if chance.random() < 0.8 and done.issuperset(old.parents(name)):
            done.add(name)
    new = old.edited()
    before, now = old.runnable(), new.runnable()
    is_data_new = chance.random() < 0.3

    def find_change(task: int) -> str | None:
        return "data" if is_data_new and old.rows[before.workflow.ids[task]]["outside"] else None

    def files(rows: Drawn, name: str) -> list[str]:
        return sorted(f"{rows.rows[r]['dir']}/{r}" for r in rows.rows[name]["reads"])  # type: ignore[attr-defined]

    def is_own_same(name: str) -> bool:
        if name not in done or name not in old.rows:
            return False
        was, is_now = old.rows[name], new.rows[name]
        same = all(was[key] == is_now[key] for key in ("command", "env", "dir", "outside"))
        return (
            same and files(old, name) == files(new, name) and not (is_data_new and was["outside"])
        )

    expected = {name for name in new.rows if all(map(is_own_same, {name, *new.ancestors(name)}))}
    found = changes(before, now, lambda task: before.workflow.ids[task] in done, find_change)
    ids = now.workflow.ids
    assert {ids[task] for task in found.kept} == expected
    assert all(before.workflow.ids[was] == ids[task] for task, was in found.kept.items())
    had_finished = {ids.index(name) for name in done if name in new.rows}
    assert found.kept.keys() | found.again.keys() | found.dependents.keys() == had_finished
    assert not found.again.keys() & found.dependents.keys()
    for task, root in found.dependents.items():
        assert ids[root] in new.ancestors(ids[task])
        assert root not in found.kept
    assert {ids[task] for task in found.added} == new.rows.keys() - old.rows.keys()
    assert set(found.removed) == old.rows.keys() - new.rows.keys()
    if found.is_same:
        assert found.kept.keys() == had_finished
        assert change_lines(found) == []


def pair(**change: object) -> tuple[Runnable, Runnable]:
    """A workflow of one finished task, and the same with a change of its step or task."""
    task = Task("use", 5.0, inputs=("x",), outputs=("y",), cores=1, memory_bytes=10)
    step = Step(("/bin/sh", "-c", "cp x y"), "/w", (("A", "1"),), retries=1)
    of_task = {key: value for key, value in change.items() if hasattr(task, key)}
    of_step = {key: value for key, value in change.items() if hasattr(step, key)}
    old = Runnable(Workflow.from_tasks("w", [task]), (step,))
    return old, Runnable(
        Workflow.from_tasks("w", [replace(task, **of_task)]),  # type: ignore[arg-type]
        (replace(step, **of_step),),  # type: ignore[arg-type]
    )


def compared(old: Runnable, new: Runnable) -> Changes:
    return changes(old, new, lambda _: True, lambda _: None)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"command": ("/bin/sh", "-c", "cat x > y")}, "its command changed"),
        ({"env": (("A", "2"),)}, "its environment changed"),
        ({"workdir": "/v"}, "its working folder changed"),
        ({"inputs": ("x", "z")}, "its inputs changed"),
        ({"outputs": ("y", "z")}, "its outputs changed"),
    ],
)
def test_why_a_task_runs_again(change: dict[str, object], why: str) -> None:
    found = compared(*pair(**change))
    assert found.again == {0: why}
    assert change_lines(found) == [f"1 finished task runs again: use ({why})"]


@pytest.mark.parametrize(
    "change", [{"runtime_s": 9.0}, {"retries": 3}, {"memory_bytes": 99}, {"cores": 2}]
)
def test_what_a_task_needs_is_news_but_no_reason_to_run_it_again(change: dict[str, object]) -> None:
    found = compared(*pair(**change))
    assert found.kept == {0: 0}
    assert not found.is_same


def test_a_run_time_that_the_file_does_not_state_is_no_change() -> None:
    old, new = pair(runtime_s=60.0, runtime_known=False)
    assert compared(old, new).is_same


def test_the_strict_shell_is_the_same_wherever_it_is() -> None:
    strict = ("/usr/bin/bash", "-euo", "pipefail", "-c", "cp x y")
    old, new = pair(command=strict)
    other = replace(
        new.steps[0], command=("/opt/bash", *strict[1:])
    )  # the same, on another machine
    assert compared(new, Runnable(new.workflow, (other,))).is_same
    back = compared(new, old)  # from the strict shell to one that was chosen
    assert back.again == {0: "its command changed"}
