from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import InputError
from windrow.formats import read_workflow, write_workflow
from windrow.model import File, Task, Workflow


def instance(**changes: Any) -> dict[str, Any]:
    """A 1.5 instance of two tasks, a then b; what is given replaces parts of it."""
    tasks = [
        {
            "name": "a",
            "id": "a",
            "parents": [],
            "children": ["b"],
            "inputFiles": [],
            "outputFiles": ["f"],
        },
        {
            "name": "b",
            "id": "b",
            "parents": ["a"],
            "children": [],
            "inputFiles": ["f"],
            "outputFiles": [],
        },
    ]
    parts: dict[str, Any] = {
        "version": "1.5",
        "tasks": tasks,
        "files": [{"id": "f", "sizeInBytes": 7}],
        "executed": [{"id": "b", "runtimeInSeconds": 2.5}, {"id": "a", "runtimeInSeconds": 1}],
        **changes,
    }
    return {
        "name": "two",
        "schemaVersion": parts["version"],
        "workflow": {
            "specification": {"tasks": parts["tasks"], "files": parts["files"]},
            "execution": {
                "makespanInSeconds": 3.5,
                "executedAt": "2024",
                "tasks": parts["executed"],
            },
        },
    }


def old_instance(*tasks: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": "old",
        "schemaVersion": "1.4",
        "workflow": {"makespanInSeconds": 1, "tasks": list(tasks)},
    }


def load(folder: Path, document: Any) -> Workflow:
    path = folder / "wf.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document, indent=1))
    return read_workflow(path)


def test_a_1_5_instance_and_the_same_as_1_6(tmp_path: Path) -> None:
    document = instance(
        executed=[
            {
                "id": "b",
                "runtimeInSeconds": 2.5,
                "coreCount": 1.5,
                "memoryInBytes": 1e6,
                "avgCPU": 93.1,
                "machines": ["m"],
            },
            {
                "id": "a",
                "runtimeInSeconds": 1,
                "command": {"program": "p", "arguments": ["-x", "1"]},
            },
        ]
    )
    workflow = load(tmp_path, document)
    assert list(workflow) == [
        Task("a", 1.0, "a", outputs=("f",), command=("p", "-x", "1")),
        Task("b", 2.5, "b", parents=("a",), inputs=("f",), cores=2, memory_bytes=1_000_000),
    ]
    assert (workflow.name, workflow.files) == ("two", (File("f", 7),))

    document["schemaVersion"] = "1.6"
    document["workflow"]["specification"]["metrics"] = {"numberOfTasks": 2, "numberOfLevels": 2}
    document["workflow"]["execution"]["metrics"] = {"sumTaskRuntimesInSeconds": 3.5}
    assert list(load(tmp_path, document)) == list(workflow)


def test_edges_from_either_end_are_united_and_count_once(tmp_path: Path) -> None:
    tasks = [
        {"name": "x", "id": "1", "parents": [], "children": ["3", "3"]},
        {"name": "x", "id": "2", "parents": [], "children": []},
        {"name": "x", "id": "3", "parents": ["2", "2"], "children": ["4"]},
        {"name": "x", "id": "4", "parents": ["3"], "children": []},
    ]
    workflow = load(tmp_path, instance(tasks=tasks, files=[], executed=[]))
    assert [set(task.parents) for task in workflow] == [set(), set(), {"1", "2"}, {"3"}]
    assert workflow.parents.edges == 3


def test_a_specification_alone_describes_structure_with_no_run_times(tmp_path: Path) -> None:
    document = instance()
    del document["workflow"]["execution"]
    assert load(tmp_path, document).runtime_s.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("task_id", "name", "program", "kind"),
    [
        ("mProject_ID0000001", "mProject_ID0000001", "mProject", "mProject"),
        (
            "fast2bfq_fast2bfq_HEP2_1_ID0000002",
            "fast2bfq_fast2bfq_HEP2_1_ID0000002",
            "fast2bfq",
            "fast2bfq",
        ),
        ("blastall_00000003", "blastall_00000003", "wfbench", "blastall"),
        ("blastall_00000003", "blastall_00000003", None, "blastall"),
        ("NF.FASTQC_2", "NF.FASTQC", "fastqc --quiet\n", "NF.FASTQC"),
        ("17", "17", "sort", "sort"),
        ("17", "17", None, ""),
    ],
)
def test_kinds(tmp_path: Path, task_id: str, name: str, program: str | None, kind: str) -> None:
    tasks = [{"name": name, "id": task_id, "parents": [], "children": []}]
    command = {} if program is None else {"command": {"program": program}}
    executed = [{"id": task_id, "runtimeInSeconds": 1, **command}]
    assert load(tmp_path, instance(tasks=tasks, files=[], executed=executed)).kinds == (kind,)


def test_a_1_4_instance(tmp_path: Path) -> None:
    out = {"name": "f", "sizeInBytes": 5, "link": "output"}
    late = {"name": "f", "sizeInBytes": 9, "link": "input"}
    workflow = load(
        tmp_path,
        old_instance(
            {"name": "sort_ID1", "id": "ID1", "category": "sort", "type": "compute", "parents": [], "files": [out],  # noqa: E501
             "runtimeInSeconds": 3, "cores": 2, "memoryInBytes": 10,
             "command": {"program": "s", "arguments": ["f"]}},
            {"name": "merge_ID2", "id": "ID2", "type": "compute", "parents": ["sort_ID1"], "files": [late, late],  # noqa: E501
             "runtimeInSeconds": 4, "command": {"program": "merge"}},
            {"name": "merge_ID3", "id": "ID3", "type": "compute", "parents": ["ID1"], "files": [],
             "children": ["merge_ID4"], "runtimeInSeconds": 5},
            {"name": "merge_ID4", "id": "ID4", "type": "compute", "parents": [], "runtimeInSeconds": 6},  # noqa: E501
        ),
    )  # fmt: skip
    assert list(workflow) == [
        Task("sort_ID1", 3.0, "sort", outputs=("f",), cores=2, memory_bytes=10, command=("s", "f")),
        Task("merge_ID2", 4.0, "merge", parents=("sort_ID1",), inputs=("f",), command=("merge",)),
        Task("merge_ID3", 5.0, "merge", parents=("sort_ID1",)),
        Task("merge_ID4", 6.0, "merge", parents=("merge_ID3",)),
    ]
    assert workflow.files == (File("f", 5),)


def test_1_4_tasks_with_shared_names_go_by_their_ids(tmp_path: Path) -> None:
    tasks = [
        {"name": "sort", "id": "x1", "parents": [], "files": [], "runtimeInSeconds": 1},
        {"name": "sort", "id": "x2", "parents": ["x1"], "files": [], "runtimeInSeconds": 1},
        {"name": "merge", "id": "x3", "parents": ["x2"], "files": [], "runtimeInSeconds": 1},
        {"name": "end", "id": "x4", "parents": ["merge"], "files": [], "runtimeInSeconds": 1},
    ]
    workflow = load(tmp_path, old_instance(*tasks))
    assert workflow.ids == ("x1", "x2", "x3", "x4")
    assert workflow.kinds == ("sort", "sort", "merge", "end")
    assert workflow.task(3).parents == ("x3",)
    with pytest.raises(InputError, match="the unknown task sort is among its parents or children"):
        load(
            tmp_path,
            old_instance(*tasks, {"name": "no", "id": "x5", "parents": ["sort"], "files": []}),
        )


def spoiled(section: str, place: int, **fields: Any) -> dict[str, Any]:
    document = instance()
    part = "execution" if section == "executed" else "specification"
    document["workflow"][part]["files" if section == "files" else "tasks"][place].update(fields)
    return document


FAULTS: dict[str, tuple[Any, str]] = {
    "unknown parent": (
        spoiled("tasks", 1, parents=["a", "ghost"]),
        r"specification\.tasks\[1\]: the unknown task ghost is among its",
    ),
    "unknown child": (
        spoiled("tasks", 0, children=["ghost"]),
        r"specification\.tasks\[0\]: the unknown task ghost is among its",
    ),
    "not in spec": (
        spoiled("executed", 0, id="ghost"),
        r"execution\.tasks\[0\]: the task ghost is not in the spec",
    ),
    "ran twice": (
        spoiled("executed", 1, id="b"),
        r"execution\.tasks\[1\]: the task b is listed twice",
    ),
    "wrong type": (
        spoiled("tasks", 1, id=5),
        r"specification\.tasks\[1\]: Expected `str`, got `int` - at `\$\.id`",
    ),
    "text as time": (
        spoiled("executed", 1, runtimeInSeconds="1"),
        r"execution\.tasks\[1\]: Expected .*runtimeInSeconds",
    ),
    "huge": (
        spoiled("executed", 1, memoryInBytes=10**30),
        r"execution\.tasks\[1\]: .*memoryInBytes",
    ),
    "file twice": (
        instance(files=[{"id": "f", "sizeInBytes": 1}] * 2),
        r"files\[1\]: the file f is listed twice",
    ),
    "file size": (instance(files=[{"id": "f", "sizeInBytes": "big"}]), r"files\[0\]: Expected"),
    "link": (
        old_instance(
            {
                "name": "t",
                "parents": [],
                "files": [{"name": "f", "link": "sideways", "sizeInBytes": 1}],
            }
        ),
        r"workflow\.tasks\[0\]: the file f has link 'sideways'; use input or output",
    ),
}


def item_line(text: str, where: str) -> int:
    """The line on which the item named by a message (`a.b[3]`) begins, found by walking the
    indented text."""
    *path, last = where.split(".")
    name, place = last.rstrip("]").split("[")
    lines = text.splitlines()
    at = 0
    for depth, key in enumerate([*path, name], start=1):
        at = next(
            i for i in range(at, len(lines)) if lines[i].startswith(" " * depth + f'"{key}": ')
        )
    brace = " " * (len(path) + 2) + "{"
    return [i for i in range(at, len(lines)) if lines[i] == brace][int(place)] + 1


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_in_a_list_are_pointed_at(tmp_path: Path, fault: str) -> None:
    document, words = FAULTS[fault]
    with pytest.raises(InputError, match=words) as caught:
        load(tmp_path, document)
    where = caught.value.problem.partition(": ")[0]
    assert caught.value.line == item_line((tmp_path / "wf.json").read_text(), where)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (
            '{"schemaVersion": "1.5",\n "workflow": {"specification": \n{tasks: []}}}',
            r"wf\.json:3: JSON is malformed",
        ),
        (
            '{"schemaVersion": "1.5",\n "workflow": {"spec',
            r"wf\.json:2: the JSON ends too early; copy or download",
        ),
        ("[1, 2]", "Expected `object`, got `array`"),
        ("{}", "not WfFormat: it has no schemaVersion or no workflow"),
        (
            '{"schemaVersion": "1.3", "workflow": {}}',
            r"WfFormat 1\.3 is not read, only 1\.4, 1\.5, 1\.6; migrate",
        ),
        ('{"schemaVersion": "1.5", "workflow": {}}', "no tasks in it"),
        (
            '{"schemaVersion": "1.5", "workflow": {"specification": {}}}',
            "missing required field `tasks`",
        ),
        (instance(tasks=[], files=[], executed=[]), "has no tasks"),
        (
            instance(executed=[{"id": "a", "runtimeInSeconds": 1}]),
            r"1 of 2 tasks have no run time \(b\)",
        ),
        (spoiled("tasks", 0, parents=["b"]), "in a cycle: a -> b -> a|in a cycle: b -> a -> b"),
        (spoiled("tasks", 1, id="a"), "task ids must be unique, given more than once: a"),
        (
            spoiled("executed", 0, runtimeInSeconds=-61),
            r"run time must not be negative: b \(-61\.0\)",
        ),
        (spoiled("executed", 0, coreCount=0), r"a task needs at least one core: b \(0\)"),
        (spoiled("files", 0, sizeInBytes=-3), "file size must not be negative: f"),
        ("[" * 100_000, "nested too deeply|ends too early|Expected `object`"),
    ],
)
def test_what_is_no_workflow_is_refused_by_name(tmp_path: Path, document: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        load(tmp_path, document)
    assert str(caught.value).startswith(str(tmp_path / "wf.json"))


def test_bytes_that_are_not_utf8_are_pointed_at(tmp_path: Path) -> None:
    text = json.dumps(spoiled("tasks", 1, id="bÿ"), indent=1, ensure_ascii=False)
    (tmp_path / "wf.json").write_bytes(text.encode("latin1"))
    line = next(i for i, row in enumerate(text.splitlines(), start=1) if "ÿ" in row)
    with pytest.raises(InputError, match=rf"wf\.json:{line}: not UTF-8 text"):
        read_workflow(tmp_path / "wf.json")


ids = st.text(
    st.characters(exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp")), min_size=0, max_size=8
)
sizes = st.integers(0, 2**53)


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    """Any workflow at all: ids of any characters, shared and missing files, parents in any
    order."""
    names = draw(st.lists(ids, min_size=1, max_size=6, unique=True))
    file_ids = draw(st.lists(ids, max_size=5, unique=True))
    some_files = (
        st.lists(st.sampled_from(file_ids), unique=True, max_size=4) if file_ids else st.just([])
    )
    order = draw(st.permutations(range(len(names))))
    tasks = [
        Task(
            id=name,
            runtime_s=draw(st.floats(0, 1e9)),
            kind=draw(st.one_of(st.just(name), st.just(""), ids)),
            parents=tuple(
                names[j]
                for j in draw(st.permutations(range(len(names))))
                if order[j] < order[i] and draw(st.booleans())
            ),
            inputs=tuple(draw(some_files)),
            outputs=tuple(draw(some_files)),
            cores=draw(st.integers(1, 1_000_000)),
            nodes=draw(st.integers(0, 3)),
            memory_bytes=draw(sizes),
            command=tuple(draw(st.lists(ids, max_size=3))),
        )
        for i, name in enumerate(names)
    ]
    return Workflow.from_tasks(
        draw(ids), tasks, [File(file_id, draw(sizes)) for file_id in file_ids]
    )


@pytest.mark.slow
@given(workflow=workflows(), packed=st.booleans())
def test_a_written_workflow_reads_back_equal(
    tmp_path_factory: pytest.TempPathFactory, workflow: Workflow, packed: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / ("made.json.gz" if packed else "made.json")
    write_workflow(workflow, path)
    again = read_workflow(path)
    assert list(again) == list(workflow)
    assert (again.name, again.files) == (workflow.name, workflow.files)


def test_what_is_written_has_all_that_the_schema_requires(tmp_path: Path) -> None:
    tasks = [
        Task("a", 1.5, "k", outputs=("f",)),
        Task("b", 2, "b", parents=("a",), inputs=("f",), nodes=2),
    ]
    write_workflow(Workflow.from_tasks("w", tasks, [File("f", 3)]), tmp_path / "w.json.gz")
    document = json.loads(gzip.decompress((tmp_path / "w.json.gz").read_bytes()))
    assert {"name", "schemaVersion", "workflow"} <= document.keys()
    assert document["schemaVersion"] == "1.5"
    specification, execution = (
        document["workflow"]["specification"],
        document["workflow"]["execution"],
    )
    assert all(
        {"name", "id", "parents", "children"} <= task.keys() for task in specification["tasks"]
    )
    assert specification["tasks"][0]["children"] == ["b"]
    assert specification["files"] == [{"id": "f", "sizeInBytes": 3}]
    assert {"makespanInSeconds", "executedAt", "tasks"} <= execution.keys()
    assert [
        (task["id"], task["runtimeInSeconds"], task["coreCount"]) for task in execution["tasks"]
    ] == [
        ("a", 1.5, 1),
        ("b", 2.0, 1),
    ]


@pytest.mark.slow
def test_long_lists_are_written_whole(tmp_path: Path) -> None:
    """More tasks than go into one write, so that the joints between writes are seen."""
    n = 10_000
    tasks = [
        Task(str(i), float(i), "k", parents=(str(i - 1),) if i % 7 else (), inputs=(f"f{i // 3}",))
        for i in range(n)
    ]
    workflow = Workflow.from_tasks("long", tasks)
    write_workflow(workflow, tmp_path / "long.json")
    again = read_workflow(tmp_path / "long.json")
    assert list(again) == tasks
    assert again.files == workflow.files
