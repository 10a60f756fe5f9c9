"""The manual: a page for each command, made of its parser, as a man page or as a page of the
documentation.

Rule: nothing is written here that `--help` does not say, so that nothing can be out of date. What
makes the wheel calls it where nothing but the standard library is installed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from windrow.cli.main import GROUPS, parser_of
from windrow.version import __version__

COLUMNS = 84
EXIT_CODES: Mapping[int, str] = {
    0: "all went well; of a run: every task finished",
    1: "not all went well: tasks failed or did not run, or a queue, a disk or a network failed",
    2: "the input is wrong, and nothing was started",
    130: "interrupted (Ctrl-C)",
    141: "the reader of the output left (| head)",
}
"""Of every command."""


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Options that belong together: how each is typed, and what it does."""

    title: str
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Page:
    """What is said of a command. `end` is plain text: rules, and examples above all."""

    name: str
    summary: str
    usage: str
    groups: tuple[OptionGroup, ...]
    end: str


def page(name: str) -> Page:
    """Of this command."""
    parser = parser_of(name, COLUMNS)
    usage = parser.format_usage().removeprefix("usage: ").rstrip()
    groups = tuple(_groups(parser))
    return Page(name, parser.description or "", usage, groups, (parser.epilog or "").strip("\n"))


def commands() -> Iterator[str]:
    """Our own, in the order of the help."""
    for names in GROUPS.values():
        yield from names


def _groups(parser: argparse.ArgumentParser) -> Iterator[OptionGroup]:
    formatter = parser._get_formatter()
    for group in parser._action_groups:  # argparse tells of them in no other way
        found = [
            (formatter._format_action_invocation(action), formatter._expand_help(action))
            for action in group._group_actions
            if action.help and action.help is not argparse.SUPPRESS
        ]
        if found:
            yield OptionGroup(group.title or "", tuple(found))


def as_markdown(told: Page) -> str:
    """For the documentation."""
    parts = [f"# windrow {told.name}", told.summary, _fenced(told.usage)]
    for group in told.groups:
        parts.append(f"## {group.title[:1].upper()}{group.title[1:]}")
        lines = [f"- `{form}`: {_plain(words)}" for form, words in group.options]
        parts.append("\n".join(lines))
    if told.end:
        parts += ["## Notes and examples", _fenced(told.end)]
    return "\n\n".join(parts) + "\n"


def _plain(words: str) -> str:
    """Text in which nothing is markup."""
    return "".join(f"\\{c}" if c in "\\`*_<>[]$~#" else c for c in words)


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```"


def index() -> str:
    """A page of the documentation that names all commands, and what exit codes mean."""
    parts = ["# Commands", "Each page says what `windrow COMMAND --help` says."]
    for title, names in GROUPS.items():
        lines = [f"- [windrow {name}]({name}.md): {_plain(page(name).summary)}" for name in names]
        parts += [f"## {title[:1].upper()}{title[1:]}", "\n".join(lines)]
    codes = [f"| {code} | {words} |" for code, words in EXIT_CODES.items()]
    parts += [
        "## Exit codes",
        "\n".join(["| code | meaning |", "| --- | --- |", *codes]),
        f"```{{toctree}}\n:hidden:\n\n{chr(10).join(commands())}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def as_man(told: Page) -> str:
    """For `man windrow-COMMAND`."""
    lines = [
        _title(f"windrow-{told.name}"),
        *(".SH NAME", f"windrow-{told.name} \\- {_roff(told.summary)}"),
        *(".SH SYNOPSIS", ".nf", _roff(told.usage), ".fi"),
    ]
    for group in told.groups:
        lines.append(f'.SH "{_roff(group.title.upper())}"')
        for form, words in group.options:
            lines += [".TP", f"\\fB{_roff(form)}\\fR", _roff(words)]
    if told.end:
        lines += ['.SH "NOTES AND EXAMPLES"', ".nf", _roff(told.end), ".fi"]
    return "\n".join([*lines, *_exits(), *_see(("windrow",))]) + "\n"


def man_of_all() -> str:
    """For `man windrow`."""
    names = tuple(commands())
    lines = [
        _title("windrow"),
        *(".SH NAME", "windrow \\- cut workflows into batch jobs, run them, simulate clusters"),
        *(".SH SYNOPSIS", ".B windrow", "COMMAND ..."),
        '.SH "COMMANDS"',
    ]
    for name in names:
        lines += [".TP", f"\\fBwindrow {name}\\fR", _roff(page(name).summary)]
    see = _see([f"windrow-{name}" for name in names])
    return "\n".join([*lines, *_exits(), *see]) + "\n"


def _title(name: str) -> str:
    return f'.TH {name.upper()} 1 "" "Windrow {__version__}" "User Commands"'


def _exits() -> list[str]:
    lines = ['.SH "EXIT STATUS"']
    for code, words in EXIT_CODES.items():
        lines += [".TP", str(code), _roff(words)]
    return lines


def _see(names: Sequence[str]) -> list[str]:
    return ['.SH "SEE ALSO"', ", ".join(f"{_roff(name)}(1)" for name in names)]


def _roff(text: str) -> str:
    """Text in which nothing steers the formatter."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(
        f"\\&{line}" if line[:1] in (".", "'") else line for line in escaped.split("\n")
    )


def man_pages() -> dict[str, str]:
    """All of them, by the names of their files."""
    found = {f"windrow-{name}.1": as_man(page(name)) for name in commands()}
    return {"windrow.1": man_of_all(), **found}
