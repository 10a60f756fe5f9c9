"""Values never become shell code. The oracle is the shell itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from windrow.errors import InputError
from windrow.formats.native import read_native
from windrow.formats.native_text import ShellTemplate, Template, UnsafePlaceError

SHELLS = sorted({path for path in ("/bin/sh", shutil.which("bash"), shutil.which("dash")) if path})
HOSTILE = (
    "$(touch canary)",
    "`touch canary`",
    "; touch canary;",
    "\ntouch canary\n",
    "' ; touch canary ; '",
    '" ; touch canary ; "',
    "'$(touch canary)'",
    "a && touch canary #",
    "a | touch canary",
    "E\ntouch canary\n",
    "x[$(touch canary)]",
    "\\",
    "a b",
    "",
    "*",
    "~",
)
QUOTES = ("'", '"', "\\", "`", "$'", '$"', "it's", "# don't\n", "'\"'", '"$(', '"${x:-"', "\\\n", "<<E\n", "\nE\n")
CODE = (
    "#",
    " ",
    "\n",
    "$",
    "$(",
    ")",
    "((",
    "))",
    "${x}",
    "${x#",
    "${x:-",
    "}",
    "{",
    "echo ",
    ";",
    "&&",
    "|",
    "x=",
    "$x",
)
FRAGMENTS = (*QUOTES, *CODE, "case a in a) ", " ;; esac")


def run(shell: str, code: str, folder: Path) -> bytes:
    return subprocess.run([shell, "-c", code], cwd=folder, capture_output=True, timeout=10, check=False).stdout


@pytest.mark.slow
@settings(derandomize=True, max_examples=150, deadline=None)
@given(value=st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")))
def test_a_value_is_one_word_and_arrives_as_it_is(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    code = ShellTemplate.of(Template.parse("printf '%s|' a {v} b")).fill({"v": (value,)})
    for shell in SHELLS:
        assert run(shell, code, tmp_path_factory.getbasetemp()) == b"a|" + value.encode() + b"|b|"


@pytest.mark.slow
@settings(derandomize=True, max_examples=500, deadline=None)
@given(
    before=st.lists(st.sampled_from(FRAGMENTS), max_size=7),
    between=st.lists(st.sampled_from((*FRAGMENTS, "{v}", "{none}")), max_size=3),
    after=st.lists(st.sampled_from(FRAGMENTS), max_size=3),
    value=st.sampled_from(HOSTILE),
)
def test_no_value_runs_wherever_it_stands(
    tmp_path_factory: pytest.TempPathFactory, before: list[str], between: list[str], after: list[str], value: str
) -> None:
    template = Template.parse("".join([*before, *between, "{v}", *after]))
    assume("v" in template.names)
    folder = tmp_path_factory.getbasetemp()
    try:
        code = ShellTemplate.of(template).fill({"v": (value,), "none": ()})
    except UnsafePlaceError:
        return
    for shell in SHELLS:
        run(shell, code, folder)
        assert not (folder / "canary").exists(), (shell, code)


@pytest.mark.parametrize(
    "text",
    [
        "echo {v}",
        "x={v}; echo $x",
        "# don't\necho {v}",
        "a=$(cat {v})",
        "echo 'it'\\''s' {v}",
        'echo "${x}" {v}',
        "(cd {v})",
    ],
)
def test_plain_words_are_known_as_such(text: str) -> None:
    assert ShellTemplate.of(Template.parse(text)).plain == (True,)


@pytest.mark.parametrize(
    "text",
    [
        "echo '{v}'",
        'echo "{v}"',
        "echo \\{v}",
        "cat <<END\n{v}\nEND",
        "echo $(( {v} ))",
        "echo `ls {v}`",
        "echo \"$(echo '\"')\" '{v}'",
        "# it's {v}",
        "echo $'it\\'s' {v}",
    ],
)
def test_doubtful_places_take_harmless_values_only(text: str) -> None:
    shell = ShellTemplate.of(Template.parse(text))
    assert shell.fill({"v": ("a/b-1.txt",)}) == text.replace("{v}", "a/b-1.txt")
    with pytest.raises(UnsafePlaceError):
        shell.fill({"v": ("a b",)})


def test_the_message_names_value_line_and_fix(tmp_path: Path) -> None:
    text = """tasks:
  - id: t
    matrix: {s: ["$(touch canary)"]}
    command: echo "{s}"
"""
    (tmp_path / "wf.yaml").write_text(text)
    with pytest.raises(InputError, match=r"wf.yaml:4: \{s\} is '\$\(touch canary\)'.*outside of quotes.*or make the"):
        read_native(tmp_path / "wf.yaml")


def test_hostile_names_run_harmlessly_from_end_to_end(tmp_path: Path) -> None:
    names = [value for value in HOSTILE if value.strip() and "/" not in value and "*" not in value]
    quoted = ", ".join('"' + "".join(f"\\x{ord(c):02x}" for c in name) + '"' for name in names)
    text = f"""tasks:
  - id: "t{{s}}"
    matrix: {{s: [{quoted}]}}
    command: cat {{inputs}} > {{outputs}}; printf %s {{s}}{{id}} >> {{outputs}}
    inputs: in;$(touch canary)
    outputs: "out{{s}}"
    env: {{V: "{{s}}"}}
  - id: list
    command: [cp, --, "{{inputs}}", "here $(touch canary)"]
    inputs: in;$(touch canary)
    outputs: here $(touch canary)
"""
    (tmp_path / "wf.yaml").write_text(text)
    (tmp_path / "in;$(touch canary)").write_text("in")
    runnable = read_native(tmp_path / "wf.yaml")
    for step in runnable.steps:
        subprocess.run(step.command, cwd=step.workdir, env=dict(step.env) | {"PATH": "/usr/bin:/bin"}, check=True)
    assert [(tmp_path / f"out{name}").read_text() for name in names] == [f"in{name}t{name}" for name in names]
    assert (tmp_path / "here $(touch canary)").read_text() == "in"
    assert not (tmp_path / "canary").exists()
    assert dict(runnable.steps[0].env) == {"V": names[0]}
