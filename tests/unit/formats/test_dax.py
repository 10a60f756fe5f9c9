from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from windrow.errors import InputError
from windrow.formats import read_workflow
from windrow.model import File, Task, Workflow

JOB_A = '<job id="A" name="k" runtime="1"/>'
JOB_B = '<job id="B" name="k" runtime="1"/>'


def load(folder: Path, *body: str, root: str = 'adag name="made" version="2.1"') -> Workflow:
    """A file whose third line is the first of `body`."""
    tag = root.split(maxsplit=1)[0]
    (folder / "wf.dax").write_text(
        "\n".join(['<?xml version="1.0"?>', f"<{root}>", *body, f"</{tag}>", ""])
    )
    return read_workflow(folder / "wf.dax")


def test_version_2_1(tmp_path: Path) -> None:
    workflow = load(
        tmp_path,
        '<job id="A" namespace="N" name="split" version="1.0" runtime="13.5">',
        '  <uses file="in" link="input" size="100"/><uses file="x" link="output" size="7"/>',
        "</job>",
        '<job id="B" name="join" runtime="2"><uses file="x" link="input" size="7"/></job>',
        '<child ref="B"><parent ref="A"/></child>',
        root='adag xmlns="http://pegasus.isi.edu/schema/DAX" version="2.1" name="made" '
        'jobCount="2"',
    )
    assert list(workflow) == [
        Task("A", 13.5, "split", inputs=("in",), outputs=("x",)),
        Task("B", 2.0, "join", parents=("A",), inputs=("x",)),
    ]
    assert (workflow.name, workflow.files) == ("made", (File("in", 100), File("x", 7)))


def test_version_3_with_catalogues_arguments_profiles_and_a_prefix(tmp_path: Path) -> None:
    workflow = load(
        tmp_path,
        '<p:metadata key="name">diamond</p:metadata>',
        '<p:file name="f.a"><p:metadata key="size">1024</p:metadata><p:pfn url="file:///f.a" '
        'site="local"/></p:file>',
        '<p:executable name="pre"><p:pfn url="file:///bin/pre" site="local"/></p:executable>',
        '<p:job id="ID1" namespace="d" name="pre" version="2.0">',
        '  <p:argument>-a top  -i <p:file name="f.a"/> -o <p:file name="f.b"/></p:argument>',
        '  <p:profile namespace="pegasus" key="runtime">60</p:profile>',
        '  <p:profile namespace="pegasus" key="cores">4</p:profile>',
        '  <p:profile namespace="pegasus" key="nodes">2</p:profile>',
        '  <p:profile namespace="pegasus" key="memory">1.5</p:profile>',
        '  <p:profile namespace="condor" key="cores">99</p:profile>',
        '  <p:uses name="f.a" link="input"/>',
        '  <p:uses name="f.b" link="output"><p:metadata key="size">77</p:metadata></p:uses>',
        '  <p:uses name="f.c" link="inout" size="8.0"/>',
        '  <p:uses name="pre" link="none"/>',
        "</p:job>",
        root='p:adag xmlns:p="http://pegasus.isi.edu/schema/DAX" version="3.6" name="diamond"',
    )
    found = workflow.task(0)
    assert (found.runtime_s, found.kind, found.cores, found.nodes, found.memory_bytes) == (
        60.0,
        "pre",
        4,
        2,
        1_500_000,
    )
    assert (found.inputs, found.outputs) == (("f.a", "f.c"), ("f.b", "f.c"))
    assert found.command == ("pre", "-a", "top", "-i", "f.a", "-o", "f.b")
    assert workflow.files == (File("f.a", 1024), File("f.b", 77), File("f.c", 8))


def test_repeated_parents_children_and_uses_count_once(tmp_path: Path) -> None:
    workflow = load(
        tmp_path,
        JOB_A,
        '<job id="B" name="k" runtime="1">',
        '<uses file="f" link="input"/><uses file="f" link="input"/><uses file="f" '
        'link="output"/></job>',
        '<child ref="B"><parent ref="A"/><parent ref="A"/></child>',
        '<child ref="B"><parent ref="A"/></child>',
    )
    assert workflow.task(1) == Task("B", 1.0, "k", parents=("A",), inputs=("f",), outputs=("f",))


def test_of_contradicting_sizes_the_writers_holds_else_the_largest(tmp_path: Path) -> None:
    workflow = load(
        tmp_path,
        '<job id="A" name="k"><uses file="w" link="input" size="9"/><uses file="r" link="input" '
        'size="3"/></job>',
        '<job id="B" name="k"><uses file="w" link="output" size="4"/><uses file="r" link="input" '
        'size="8"/></job>',
        '<job id="C" name="k"><uses file="w" link="output" size="6"/><uses file="r" link="input" '
        'size="5"/></job>',
    )
    assert workflow.files == (File("w", 4), File("r", 8))


def test_edges_may_come_before_the_jobs_they_join(tmp_path: Path) -> None:
    assert load(tmp_path, '<child ref="B"><parent ref="A"/></child>', JOB_B, JOB_A).task(
        0
    ).parents == ("A",)


@pytest.mark.parametrize(
    ("root", "name"), [("adag", "wf"), ('adag name="test"', "wf"), ('adag name="x"', "x")]
)
def test_the_name_is_the_files_where_the_generators_is_no_name(
    tmp_path: Path, root: str, name: str
) -> None:
    assert load(tmp_path, JOB_A, root=root).name == name


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ([JOB_A, '<child ref="A"><parent ref="Z"/></child>'], 4, "unknown job Z; add that job"),
        ([JOB_A, '<child ref="Z">', '<parent ref="A"/></child>'], 4, "unknown job Z"),
        ([JOB_A, "<child><parent ref='A'/></child>"], 4, "<child> without the attribute 'ref'"),
        (['<job name="k"/>'], 3, "<job> without the attribute 'id'"),
        (['<job id="A" name="k" runtime="fast"/>'], 3, "runtime is 'fast', not a valid number"),
        (['<job id="A" name="k" runtime="nan"/>'], 3, "runtime is 'nan', not a valid number"),
        (
            ['<job id="A" name="k">', '<uses file="f" link="input" size="1e300"/></job>'],
            4,
            "size is '1e300'",
        ),
        (
            ['<job id="A" name="k">', '<uses file="f" link="both"/></job>'],
            4,
            "link is 'both'; use input, output",
        ),
        (
            ['<job id="A" name="k">', '<uses link="input"/></job>'],
            4,
            "<uses> without the attribute 'name' or 'file'",
        ),
        ([JOB_A, '<dax id="D" file="sub.dax"/>'], 4, "the sub-workflow <dax> is in another file"),
        ([JOB_A, "<job>"], 5, r"not well-formed XML \(mismatched tag\)"),
        ([JOB_A, "\x01"], 4, r"not well-formed XML \(not well-formed"),
    ],
)
def test_faults_have_their_line(tmp_path: Path, body: list[str], line: int, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        load(tmp_path, *body)
    assert caught.value.line == line
    assert caught.value.fix


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ([JOB_A, JOB_A], "task ids must be unique, given more than once: A"),
        ([JOB_A, '<child ref="A"><parent ref="A"/></child>'], "in a cycle: A -> A"),
        (
            [JOB_A, '<job id="B" name="k"/>'],
            r"1 of 2 tasks have no run time \(B\); give one to all or to none",
        ),
        (['<job id="A" name="k" runtime="-61"/>'], r"run time must not be negative: A \(-61"),
        (
            ['<job id="A" name="k"><uses file="f" link="input" size="-1"/></job>'],
            "file size must not be negative: f",
        ),
        ([], "has no tasks"),
    ],
)
def test_what_makes_no_workflow_is_refused_by_name(
    tmp_path: Path, body: list[str], words: str
) -> None:
    with pytest.raises(InputError, match=r"wf\.dax: .*" + words):
        load(tmp_path, *body)


def test_other_xml_and_cut_xml_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not DAX: its outermost element is <html>, not <adag>"):
        load(tmp_path, root="html")
    (tmp_path / "cut.xml").write_text(f"<adag>\n{JOB_A}\n")
    with pytest.raises(
        InputError, match=r"cut\.xml:3: not well-formed XML \(no element found\).*cut off"
    ):
        read_workflow(tmp_path / "cut.xml")
    (tmp_path / "odd.xml").write_text('<?xml version="1.0" encoding="klingon"?><adag/>')
    with pytest.raises(InputError, match=r"odd\.xml:1: .*encoding"):
        read_workflow(tmp_path / "odd.xml")


def test_other_encodings_are_read_as_declared(tmp_path: Path) -> None:
    text = (
        '<?xml version="1.0" encoding="iso-8859-1"?><adag><job id="Ä" name="k" runtime="1"/></adag>'
    )
    (tmp_path / "latin.xml").write_bytes(text.encode("latin1"))
    assert read_workflow(tmp_path / "latin.xml").ids == ("Ä",)


def test_entities_that_explode_are_stopped(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10}">' for i in range(1, 12))
    (tmp_path / "bomb.xml").write_text(
        f'<!DOCTYPE adag [<!ENTITY e0 "boom">{entities}]><adag><job>&e11;</job></adag>'
    )
    tracemalloc.start()
    with pytest.raises(
        InputError, match=r"bomb\.xml:1: declares the entity 'e0'; write out what it stands for"
    ):
        read_workflow(tmp_path / "bomb.xml")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1e6


def test_run_times_slightly_below_zero_are_read_as_zero_and_counted(tmp_path: Path) -> None:
    """As in Pegasus's public Epigenomics workflow of 997 tasks, which has 57 of them."""
    times = ["5", "-0.02", "-60", "0.1"]
    jobs = "".join(f'<job id="J{i}" name="k" runtime="{time}"/>' for i, time in enumerate(times))
    (tmp_path / "wf.dax").write_text(f'<adag name="n">{jobs}</adag>')
    workflow = read_workflow(tmp_path / "wf.dax")
    assert workflow.runtime_s.tolist() == [5.0, 0.0, 0.0, 0.1]
    assert workflow.mended_run_times == 2
    assert workflow.repairs() == ["repaired: 2 run times below zero, read as 0"]


@pytest.mark.parametrize("time", ["-61", "nan", "1e18", "1000000001"])
def test_run_times_far_below_zero_or_above_all_reason_are_refused(
    tmp_path: Path, time: str
) -> None:
    (tmp_path / "wf.dax").write_text(
        f'<adag name="n"><job id="A" name="k" runtime="{time}"/></adag>'
    )
    with pytest.raises(InputError, match=r"run time must|runtime is"):
        read_workflow(tmp_path / "wf.dax")


@pytest.mark.parametrize("name", ["a&#27;[31m", "a&#10;b", "a&#x202e;b", "a&#x9b;b"])
def test_names_that_would_steer_a_terminal_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "wf.dax").write_text(
        f'<adag name="n"><job id="{name}" name="k" runtime="1"/></adag>'
    )
    with pytest.raises(InputError, match=r"the id 'a.*' has a control character|not well-formed"):
        read_workflow(tmp_path / "wf.dax")
