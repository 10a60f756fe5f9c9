"""YAML text as a tree whose every part knows its line. Nothing in a file can run code or grow
without bound.

Rule 1: the tree is built from the parser's events: no tag is honoured and no object is constructed.
Rule 2: nesting, and what aliases repeat, are bounded, so a small file stays small. Rule 3: a key
stands once in its mapping.
Rule 4: a value is text as written. Whether unquoted text means a number is decided where a number
is wanted; `no`, `on` and `1:30` are never anything but text (the types are those of YAML 1.2's core
schema).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from windrow.errors import InputError
from windrow.formats.disk import AnyPath, read_text

DEPTH_MAX = 20
"""How deeply a file may be nested; a workflow needs six."""

REPEATED_MAX = 10_000
"""How many values aliases may repeat in one file."""

_LOADER: Any = getattr(
    yaml, "CSafeLoader", yaml.SafeLoader
)  # the same events, from C if PyYAML was built with it
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BARE_BRACE = re.compile(
    r"\[[^\"']*[^\"'\s,\[]\{[A-Za-z_]|\[[^\"']*\{[A-Za-z_][^:}]*\}[^\s,\]]"
)  # [a/{s}.gz, x]
_WORDS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value. `quoted` is True if quotes or a block say that it is text, whatever it looks
    like."""

    text: str
    quoted: bool
    line: int

    @property
    def whole(self) -> int | None:
        """The whole number that it is, if it is one."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if float(value).is_integer():
            return int(value)
        return None

    @property
    def value(self) -> str | int | float | bool | None:
        """What the value is by YAML 1.2's core schema, without its octal and hexadecimal numbers,
        inf and nan."""
        if self.quoted:
            return self.text
        if self.text in _NULLS:
            return None
        if self.text in _WORDS:
            return _WORDS[self.text]
        if _INT.fullmatch(self.text) and len(self.text) < 20:
            return int(self.text)
        if _FLOAT.fullmatch(self.text):
            return float(self.text)
        return self.text


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    items: tuple[Node, ...]
    line: int


@dataclass(frozen=True, slots=True)
class YamlTable:
    """A mapping: its keys and values, in the order of the file."""

    entries: tuple[tuple[Scalar, Node], ...]
    line: int


Node = Scalar | Items | YamlTable


def read_yaml(path: AnyPath) -> Node:
    """The one document in the file. InputError, with the line, if it is not YAML or not of the
    harmless kind."""
    return _Builder(path).build(read_text(path))


class Line(int):
    """A line of another file than the one that is read."""

    path: AnyPath = ""


def read_included(path: AnyPath) -> Node:
    """The same, with lines that know their file."""
    return _placed(read_yaml(path), path)


def _placed(node: Node, path: AnyPath) -> Node:
    line = Line(node.line)
    line.path = path
    match node:
        case Scalar():
            return replace(node, line=line)
        case Items():
            return Items(tuple(_placed(item, path) for item in node.items), line)
    entries = []
    for key, value in node.entries:
        placed = _placed(key, path)
        assert isinstance(placed, Scalar)
        entries.append((placed, _placed(value, path)))
    return YamlTable(tuple(entries), line)


def fault_at(path: AnyPath, line: int, problem: str, fix: str) -> InputError:
    """What is wrong there; the line may be one of a file that was included."""
    if isinstance(line, Line):
        path = line.path
    return InputError(path, problem, line=int(line), fix=fix)


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    is_table: bool
    line: int
    anchor: str | None
    nodes: list[Node] = field(default_factory=list)
    size: int = 1  # values in it so far, those repeated by aliases included


class _Builder:
    def __init__(self, path: AnyPath) -> None:
        self._path = path
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._repeated = 0

    def build(self, text: str) -> Node:
        root: Node | None = None
        stack: list[_Open] = []
        for event in self._events(text):
            line = event.start_mark.line + 1
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                raise self._fault(
                    line, "a second document", "write one workflow in each file; remove the ---"
                )
            if isinstance(event, yaml.SequenceStartEvent | yaml.MappingStartEvent):
                self._refuse_tag(event, line)
                stack.append(_Open(isinstance(event, yaml.MappingStartEvent), line, event.anchor))
                if len(stack) > DEPTH_MAX:
                    raise self._fault(
                        line, f"nested more than {DEPTH_MAX} deep", "this is not a workflow"
                    )
                continue
            made = self._made(event, stack, line)
            if made is None:
                continue
            node, size = made
            if stack:
                stack[-1].nodes.append(node)
                stack[-1].size += size
            else:
                root = node
        if root is None:
            raise InputError(
                self._path,
                "there is no workflow in this file",
                fix="write name: and tasks: into it",
            )
        return root

    def _made(self, event: Any, stack: list[_Open], line: int) -> tuple[Node, int] | None:
        """The node that this event completes, and how many values it holds; None if it completes
        none."""
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event.anchor, line)
        if isinstance(event, yaml.ScalarEvent):
            self._refuse_tag(event, line)
            made: tuple[Node, int] = (Scalar(event.value, bool(event.style), line), 1)
            anchor = event.anchor
        elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
            done = stack.pop()
            if done.is_table:
                made = (self._table(done), done.size)
            else:
                made = (Items(tuple(done.nodes), done.line), done.size)
            anchor = done.anchor
        else:
            return None
        if anchor is not None:
            self._anchors[anchor] = made
        return made

    def _alias(self, anchor: str | None, line: int) -> tuple[Node, int]:
        # An anchor is known when its value is complete, so none can hold itself.
        if anchor is None or anchor not in self._anchors:
            raise self._fault(
                line, f"*{anchor} stands before the end of what &{anchor} names", "write it out"
            )
        node, size = self._anchors[anchor]
        self._repeated += size
        if self._repeated > REPEATED_MAX:
            problem = f"aliases repeat more than {REPEATED_MAX:,} values"
            raise self._fault(line, problem, "use defaults or a matrix instead")
        return node, size

    def _table(self, done: _Open) -> YamlTable:
        entries: list[tuple[Scalar, Node]] = []
        lines: dict[str, int] = {}
        for key, value in zip(done.nodes[::2], done.nodes[1::2], strict=True):
            if not isinstance(key, Scalar):
                raise self._fault(
                    key.line, "a key that is a list or a mapping", "use text as the key"
                )
            if key.text in lines:
                problem = f"{key.text!r} is given twice (first in line {lines[key.text]})"
                raise self._fault(key.line, problem, "keep one of them")
            lines[key.text] = key.line
            entries.append((key, value))
        return YamlTable(tuple(entries), done.line)

    def _refuse_tag(self, event: Any, line: int) -> None:
        if event.tag is not None and event.tag != "!":  # a lone ! only says that the text is text
            problem = (
                f"the YAML tag {event.tag!r}; workflows are plain text, numbers, lists and mappings"
            )
            raise self._fault(line, problem, "remove the tag")

    def _events(self, text: str) -> Iterator[Any]:
        try:
            yield from yaml.parse(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            at = mark.line if mark else 0
            problem, fix = _explained(
                error.problem or error.context or "", text.splitlines()[at : at + 1]
            )
            raise InputError(self._path, problem, line=at + 1, fix=fix) from None
        except yaml.reader.ReaderError as error:
            problem = "a character that YAML does not allow"
            fix = "write it as an escape in quotes"
            line = _line_of(error.character, text)
            raise InputError(self._path, problem, line=line, fix=fix) from None

    def _fault(self, line: int, problem: str, fix: str) -> InputError:
        return InputError(self._path, problem, line=line, fix=fix)


def _explained(problem: str, lines: Sequence[str]) -> tuple[str, str]:
    """What the parser found wrong with a line, and how to set it right, in words for people who do
    not parse YAML."""
    if lines:
        line = lines[0]
    else:
        line = ""
    if "\t" in line[: len(line) - len(line.lstrip())]:
        return "a tab, which YAML does not allow for indentation", "indent with spaces"
    if _BARE_BRACE.search(line):
        return (
            f"not YAML: {problem}",
            'put text with braces in quotes inside a list: ["reads/{s}.gz", x]',
        )
    return f"not YAML: {problem}", "correct it there or just above"


def _line_of(character: object, text: str) -> int | None:
    """The C parser counts bytes and the other one characters, so the line is looked for in the
    text."""
    place = text.find(chr(character) if isinstance(character, int) else str(character))
    return None if place < 0 else text.count("\n", 0, place) + 1
