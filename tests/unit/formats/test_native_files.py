"""Files that exist, files by name and by number, values for all tasks, and words of other tools."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.formats.test_native_faults import fault

from windrow.errors import InputError
from windrow.formats.native.reader import read_native
from windrow.formats.native.schema import TASK_KEYS
from windrow.model import Runnable


def read(folder: Path, text: str) -> Runnable:
    (folder / "wf.yaml").write_text(text)
    return read_native(folder / "wf.yaml")


@pytest.fixture
def reads(tmp_path: Path) -> Path:
    (tmp_path / "reads").mkdir()
    for sample in ("b", "a", "c[1]"):
        for mate in (1, 2):
            (tmp_path / f"reads/{sample}_R{mate}.fq").touch()
    (tmp_path / "reads/.hidden_R1.fq").touch()
    (tmp_path / "reads/deep").mkdir()
    (tmp_path / "reads/deep/d_R1.fq").touch()
    return tmp_path


ALIGN = """\
vars: {ref: genome.fa, level: 01}
tasks:
  - id: align-{sample}
    matrix: {sample: "reads/{}_R1.fq"}
    command: [align, "{level}", "{inputs.ref}", "{inputs.reads}", "{inputs[1]}", "{outputs.bam}"]
    inputs: {ref: "{ref}", reads: ["reads/{sample}_R1.fq", "reads/{sample}_R2.fq"]}
    code: align.py
    outputs: {bam: "out/{sample}.bam", log: "{sample}.log"}
  - id: merge
    command: merge {inputs} -o {outputs[0]} --first {inputs[0]}
    inputs: out/*.bam
    outputs: all.bam
"""


def test_files_that_exist_give_values_and_are_called_by_name(reads: Path) -> None:
    found = read(reads, ALIGN)
    workflow = found.workflow
    assert workflow.ids == ("align-a", "align-b", "align-c[1]", "merge")
    assert found.steps[0].command == (
        *("align", "01", "genome.fa", "reads/a_R1.fq", "reads/a_R2.fq", "reads/a_R1.fq"),
        "out/a.bam",
    )
    assert workflow.task(0).inputs == ("genome.fa", "reads/a_R1.fq", "reads/a_R2.fq", "align.py")
    assert workflow.task(0).outputs == ("out/a.bam", "a.log")
    assert workflow.task(3).inputs == ("out/a.bam", "out/b.bam", "out/c[1].bam")
    assert found.steps[3].command[-1] == (
        "merge out/a.bam out/b.bam 'out/c[1].bam' -o all.bam --first out/a.bam"
    )
    assert found.steps[3].elsewhere == (), "it may write by a name that is not {outputs}"


def test_a_pattern_means_what_tasks_write_or_else_what_exists(reads: Path) -> None:
    both = "tasks: [{id: a, command: 'cat {inputs}', inputs: 'reads/*_R1.fq'}]"
    assert read(reads, both).workflow.task(0).inputs == (
        *("reads/a_R1.fq", "reads/b_R1.fq", "reads/c[1]_R1.fq"),
    )
    made = both[:-1] + ", {id: b, command: x, outputs: reads/z_R1.fq}]"
    assert read(reads, made).workflow.task(0).inputs == ("reads/z_R1.fq",)
    whole = f"tasks: [{{id: a, command: x, inputs: '{reads}/reads/b*'}}]"
    assert read(reads, whole).workflow.task(0).inputs == ("reads/b_R1.fq", "reads/b_R2.fq")
    moved = "tasks: [{id: a, command: x, inputs: '../reads/b*', workdir: sub}]"
    assert [Path(name).name for name in read(reads, moved).workflow.task(0).inputs] == [
        *("b_R1.fq", "b_R2.fq"),
    ]


def test_code_of_other_languages_is_left_alone(tmp_path: Path) -> None:
    code = "awk '{x[0]++} {a.b} {print inputs[0]}' ${inputs[0]} {{inputs[0]}} {{outputs.x}}"
    step = read(tmp_path, f'tasks: [{{id: a, command: "{code}"}}]').steps[0]
    assert step.command[-1] == (
        "awk '{x[0]++} {a.b} {print inputs[0]}' ${inputs[0]} {inputs[0]} {outputs.x}"
    )


def test_values_stand_in_every_text_and_do_not_multiply(tmp_path: Path) -> None:
    text = """\
vars: {n: 3, where: sub}
defaults: {env: {N: "{n}"}, workdir: "{where}"}
tasks:
  - {id: "a{n}", command: "echo {n}", outputs: "o{n}.txt"}
  - {id: b, matrix: {i: 1..2}, command: [x, "{n}{i}"]}
"""
    found = read(tmp_path, text)
    assert found.workflow.ids == ("a3", "b-1", "b-2")
    assert found.steps[0].env == (("N", "3"),)
    assert found.steps[0].workdir == str(tmp_path / "sub")
    assert [step.command[-1] for step in found.steps[1:]] == ["31", "32"]


TASK = "tasks:\n  - id: a\n    command: x {inputs[0]}\n    inputs: f\n"
FAULTS = [
    (TASK.replace("[0]", "[1]"), r"wf.yaml:3: \{inputs\[1\]\} stands for no file: a has 1 inputs"),
    (
        TASK.replace("[0]", "[-1]"),
        r"wf.yaml:3: \{inputs\[-1\]\} stands for no file; write a number",
    ),
    (TASK.replace("[0]", "[x]"), r"\{inputs\[x\]\} stands for no file; write a number"),
    (TASK.replace("[0]", "[]"), r"\{inputs\[\]\} stands for no file; write a number"),
    (TASK.replace("[0]", ".ref"), r"\{inputs.ref\} stands for no file; name one: inputs: \{ref: "),
    (TASK.replace("inputs[0]", "input.ref"), r"stands for nothing; write \{inputs.ref\}"),
    (TASK.replace("inputs[0]", "output[0]"), r"stands for nothing; write \{outputs\[0\]\}"),
    (TASK.replace("{inputs[0]}", "{outputs[0]}"), "stands for no file: a has 0 outputs"),
    (
        TASK.replace(": f", ": {ref: f}").replace("[0]", ".re"),
        "stands for no file; the names are ref",
    ),
    (TASK + "    outputs: '{inputs[0]}.txt'\n", "stands for nothing here; files of a task can"),
    (TASK.replace(": f", ": {a b: f}"), "the name 'a b' of an input"),
    (TASK.replace(": f", ": {ref: []}"), "inputs ref is an empty list"),
    (
        TASK.replace(": f", ": 'none/*'"),
        "a reads none/[*], but no task writes such a file, and none",
    ),
    (TASK + "    matrix: {s: 'none/{}.fq'}\n", "no file is like none/{}.fq"),
    (TASK + "    matrix: {s: '{}/{}.fq'}\n", "is not a pattern of files; write {} once"),
    (TASK + "    matrix: {s: '{s}.fq'}\n", "is not a pattern of files; write {} once"),
    (TASK + "    matrix: {s: '*/{}.fq'}\n", "is not a pattern of files; write {} once"),
    ("vars: 3\n" + TASK, "vars is '3'; write names with values"),
    ("vars: {a b: 3}\n" + TASK, "the name 'a b' in vars"),
    ("vars: {inputs: 3}\n" + TASK, "the name 'inputs' in vars"),
    ("vars: {x: [1]}\n" + TASK, "x in vars is a list"),
    ("vars: {x: }\n" + TASK, "x in vars is nothing"),
    ("vars: {i: 1}\n" + TASK + "    matrix: {i: [1]}\n", "i is in vars and in this matrix"),
    (TASK + "    code: []\n    threads: 4\n", "no key 'threads'; write cores: with a number"),
]


@pytest.mark.parametrize(("text", "words"), FAULTS, ids=[words for _, words in FAULTS])
def test_each_wrong_use_is_told_with_its_line_and_the_fix(
    text: str, words: str, tmp_path: Path
) -> None:
    assert re.search(words.replace("{}", r"\{\}"), fault(tmp_path, text)), fault(tmp_path, text)


@pytest.mark.parametrize(
    ("word", "key"),
    [
        *(("threads", "cores"), ("params", "vars"), ("script", "command"), ("run", "command")),
        *(("time", "runtime"), ("walltime", "runtime"), ("mem", "memory"), ("queue", "site")),
        *(("environment", "env"), ("cwd", "workdir"), ("retry", "retries"), ("foreach", "matrix")),
        *(("tmp", "mounts"), ("needs", "after")),
        *(
            ("image", "container"),
            ("docker", "container"),
            ("log", "windrow logs"),
            ("gpu", "gpus"),
        ),
    ],
)
def test_words_of_other_tools_lead_to_the_right_key(word: str, key: str, tmp_path: Path) -> None:
    assert word not in TASK_KEYS
    told = fault(tmp_path, f"tasks:\n  - id: a\n    command: x\n    {word}: 4\n")
    assert f"wf.yaml:4: a task has no key {word!r}" in told
    assert key in told.partition(";")[2]


def test_the_files_that_were_found_are_those_of_the_run(reads: Path) -> None:
    """They are in the workflow by name: what comes later is seen as a change."""
    text = "tasks: [{id: a, command: 'cat {inputs}', inputs: 'reads/*_R2.fq'}]"
    before = read(reads, text)
    (reads / "reads/new_R2.fq").touch()
    after = read(reads, text)
    assert len(after.workflow.task(0).inputs) == len(before.workflow.task(0).inputs) + 1
    with pytest.raises(InputError):
        read(reads, text.replace("R2", "R3"))


def test_what_is_expected_and_what_may_be(tmp_path: Path) -> None:
    text = (
        "tasks:\n  - {id: a, command: x, time-limit: 5m}\n  - {id: b, command: x, runtime: 10s}\n"
    )
    found = read(tmp_path, "defaults: {time-limit: 30s}\n" + text)
    assert [step.limit_s for step in found.steps] == [300, 30]
    assert found.workflow.runtime_s.tolist() == [60, 10]
    assert read(tmp_path, text.replace("5m", "7")).workflow.runtime_s.tolist() == [7, 10]
    told = fault(tmp_path, text.replace("runtime: 10s", "runtime: 10s, time-limit: 9s"))
    assert "wf.yaml:3: a task that is expected to run for 10 s, and may for 9" in told
