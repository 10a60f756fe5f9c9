"""Values never become shell code. The oracle is the shell itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.examples import examples
from tests.waiting import PATIENCE_S

from windrow.errors import InputError
from windrow.formats.native.reader import read_native
from windrow.formats.native.text import ShellTemplate, Template, UnsafePlaceError

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
QUOTES = (
    "'",
    '"',
    "\\",
    "`",
    "$'",
    '$"',
    "it's",
    "# don't\n",
    "'\"'",
    '"$(',
    '"${x:-"',
    "\\\n",
    "<<E\n",
    "\nE\n",
)
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
# Where bash evaluates a word as a number or the index of an array, and runs the code in it.
COUNTING = (
    *(
        "x[",
        "]=1",
        "=([",
        "[[ ",
        " -eq 1 ]]",
        "[[ -v ",
        " ]]",
        "let ",
        "declare -i x=",
        "typeset -i x; ",
        "local ",
    ),
    *(
        "read ",
        "printf -v ",
        "test -v ",
        "[ -v ",
        " ]",
        "unset x[",
        "]",
        "trap ",
        " EXIT",
        "<(",
        "{a,",
    ),
    *("f() { ", "; }; f"),
)
FRAGMENTS = (*QUOTES, *CODE, *COUNTING, "case a in a) ", " ;; esac")


def run(shell: str, code: str, folder: Path) -> bytes:
    command = [shell, "-c", code]
    kept = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return kept.stdout


@pytest.mark.slow
@given(value=st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")))
def test_a_value_is_one_word_and_arrives_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, value: str
) -> None:
    code = ShellTemplate.of(Template.parse("printf '%s|' a {v} b")).fill({"v": (value,)})[0]
    for shell in SHELLS:
        assert run(shell, code, tmp_path_factory.getbasetemp()) == b"a|" + value.encode() + b"|b|"


@pytest.mark.slow
@examples(500)
@given(
    before=st.lists(st.sampled_from(FRAGMENTS), max_size=7),
    between=st.lists(st.sampled_from((*FRAGMENTS, "{v}", "{none}")), max_size=3),
    after=st.lists(st.sampled_from(FRAGMENTS), max_size=3),
    value=st.sampled_from(HOSTILE),
)
def test_no_value_runs_wherever_it_stands(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[str],
    between: list[str],
    after: list[str],
    value: str,
) -> None:
    template = Template.parse("".join([*before, *between, "{v}", *after]))
    assume("v" in template.names)
    folder = tmp_path_factory.getbasetemp()
    try:
        code = ShellTemplate.of(template).fill({"v": (value,), "none": ()})[0]
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
        "while read x; do echo $x; done < {v}",
        "[ -f {v} ] && grep -v x y",
        "awk -v x={v} '{ print x }'",
        "for i in x[0-9]; do echo {v}; done",
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
        "x[{v}]=1",
        "x=([{v}]=1)",
        "[[ {v} -eq 1 ]]",
        "let {v}",
        "typeset -i x; x={v}",
        "read -r x {v} < /dev/null",
        "printf -v {v} x",
        "test -e x -a -v {v}",
        "[ ! -v {v} ]",
        "unset x[{v}]",
        "trap {v} EXIT",
    ],
)
def test_doubtful_places_take_harmless_values_only(text: str) -> None:
    shell = ShellTemplate.of(Template.parse(text))
    assert shell.fill({"v": ("a/b-1.txt",)})[0] == text.replace("{v}", "a/b-1.txt")
    with pytest.raises(UnsafePlaceError):
        shell.fill({"v": ("a b",)})


def test_the_message_names_value_line_and_fix(tmp_path: Path) -> None:
    text = """tasks:
  - id: t
    matrix: {s: ["$(touch canary)"]}
    command: echo "{s}"
"""
    (tmp_path / "wf.yaml").write_text(text)
    with pytest.raises(
        InputError,
        match=r"wf.yaml:4: \{s\} is '\$\(touch canary\)'.*outside of quotes.*or make the",
    ):
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
        subprocess.run(
            step.command,
            cwd=step.workdir,
            env=dict(step.env) | {"PATH": "/usr/bin:/bin"},
            check=True,
        )
    assert [(tmp_path / f"out{name}").read_text() for name in names] == [
        f"in{name}t{name}" for name in names
    ]
    assert (tmp_path / "here $(touch canary)").read_text() == "in"
    assert not (tmp_path / "canary").exists()
    assert dict(runnable.steps[0].env) == {"V": names[0]}


@pytest.mark.parametrize("shell", ["[python3, -c]", "[perl, -e]", "[ssh, host]", "[bash, script]"])
def test_what_is_no_shell_takes_harmless_values_only(tmp_path: Path, shell: str) -> None:
    text = "tasks:\n  - {{id: t, matrix: {{s: [{s}]}}, shell: {shell}, command: 'print({{s}})'}}\n"
    (tmp_path / "wf.yaml").write_text(text.format(s="a b", shell=shell))
    with pytest.raises(
        InputError,
        match=r"wf.yaml:2: \{s\} is 'a b', which Windrow cannot quote for .*or put the value",
    ):
        read_native(tmp_path / "wf.yaml")
    (tmp_path / "wf.yaml").write_text(text.format(s="a-1", shell=shell))
    assert read_native(tmp_path / "wf.yaml").steps[0].command[-1] == "print(a-1)"


@pytest.mark.slow
@given(
    name=st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1),
    place=st.sampled_from(
        ("printf '%s|' a {v} b", "printf '%s|' a \"{v}\" b", "x={v}; printf '%s|' a \"$x\" b")
    ),
)
def test_a_folder_put_into_a_path_is_part_of_the_word(
    tmp_path_factory: pytest.TempPathFactory, name: str, place: str
) -> None:
    try:
        code, (at,) = ShellTemplate.of(Template.parse(place)).fill({"v": (name,)}, "v")
    except UnsafePlaceError:
        return
    folder, _, base = name.rpartition("/")
    meant = f"{folder}/.own-1/{base}" if "/" in name else f".own-1/{base}"
    for shell in SHELLS:
        printed = run(shell, f"{code[:at]}.own-1/{code[at:]}", tmp_path_factory.getbasetemp())
        assert printed == b"a|" + meant.encode() + b"|b|"
