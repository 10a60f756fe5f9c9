"""Scripts and array names: whatever users write arrives as it is, and every member of an array is
found again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.queues.port import JobSpec, SpecError
from windrow.queues.script import (
    array_name,
    array_script,
    array_tags,
    here_document,
    job_script,
    placed_script,
    redirected_script,
    tag_of,
)

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=12)
ODD = (
    "a b",
    "it's",
    '"',
    "$(exit 9)",
    "`x`",
    "\n#SBATCH --nodes=9\n",
    "EOF",
    "\nEOF\n",
    "-n",
    "*",
    "",
    "é",
    "\\",
    "!",
)
PRINT_ARGUMENTS = (sys.executable, "-c", "import json, sys; print(json.dumps(sys.argv[1:]))")


def a_spec(
    tag: str = "run-1", command: tuple[str, ...] = ("true",), output: str = "/dev/null"
) -> JobSpec:
    return JobSpec(tag, 1, 60, command, "/", output)


def run(script: str, **variables: str) -> str:
    done = subprocess.run(
        ["/bin/sh"],
        input=script,
        env=variables,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout


def test_odd_arguments_arrive_as_they_are() -> None:
    assert json.loads(run(job_script(a_spec(command=(*PRINT_ARGUMENTS, *ODD))))) == list(ODD)


def test_members_of_an_array_run_their_own_commands_into_their_own_files(tmp_path: Path) -> None:
    outputs = [tmp_path / name for name in ("a 'b", "$(c)", "%a")]
    commands = [(*PRINT_ARGUMENTS, text) for text in ("x;y", "'", "\n1)")]
    specs = [
        a_spec(f"t{i}", c, str(o)) for i, (c, o) in enumerate(zip(commands, outputs, strict=True))
    ]
    for index in range(3):
        run(array_script(specs, "INDEX"), INDEX=str(index))
    assert [json.loads(output.read_text()) for output in outputs] == [["x;y"], ["'"], ["\n1)"]]


def test_a_placed_script_runs_in_its_directory(tmp_path: Path) -> None:
    folder, output = tmp_path / "a 'b\nc", tmp_path / "o:ut"
    folder.mkdir()
    run(placed_script(redirected_script(a_spec(command=("pwd",), output=str(output))), str(folder)))
    assert output.read_text() == f"{folder}\n"


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_no_text_of_a_user_comes_before_the_first_line_of_code(texts: list[str]) -> None:
    # sbatch and qsub stop looking for directives at the first line that is neither a comment nor
    # blank.
    for script in (
        job_script(a_spec(command=("x", *texts))),
        array_script([a_spec("t1", ("x", *texts)), a_spec("t2", ("x", *texts))], "I"),
        placed_script(redirected_script(a_spec(command=("x", *texts), output=texts[0])), texts[0]),
    ):
        shebang, first = script.split("\n")[:2]
        assert shebang == "#!/bin/sh"
        assert first.startswith(("exec ", "case ", "cd "))


@given(TEXTS)
def test_a_here_document_is_the_script(text: str) -> None:
    script = f"#!/bin/sh\n{text}\nEOF\n"
    assert run(here_document("cat", script)) == script


@given(
    st.from_regex(r"[A-Za-z0-9._-]{0,6}[A-Za-z._-]", fullmatch=True),
    st.integers(0, 12000),
    st.integers(2, 40),
    st.booleans(),
)
def test_an_arrays_name_tells_every_tag(prefix: str, first: int, count: int, padded: bool) -> None:
    width = len(str(first + count)) + 1 if padded else 0
    tags = [f"{prefix}{number:0{width}d}" for number in range(first, first + count)]
    name = array_name([a_spec(tag) for tag in tags])
    assert array_tags(name) == tags
    assert [tag_of(name, index) for index in range(count)] == tags
    assert tag_of(name, count) is None


@pytest.mark.parametrize(
    "tags", [["a1", "a3"], ["a1", "b2"], ["a2", "a1"], ["a", "b"], ["a1", "a1"], ["a09", "a010"]]
)
def test_other_tags_form_no_array(tags: list[str]) -> None:
    with pytest.raises(SpecError):
        array_name([a_spec(tag) for tag in tags])


def test_jobs_that_differ_form_no_array() -> None:
    with pytest.raises(SpecError, match="differ"):
        array_name([a_spec("a1"), JobSpec("a2", 2, 60, ("true",), "/", "/dev/null")])
