"""Text with placeholders: `{name}` stands for a value, `{{name}}` for itself in single braces.

Rule 1: only braces around a lone name mean anything, or around one of a task's files
(`{inputs[0]}`, `{outputs.bam}`), and not after a dollar sign: `{a,b}`, `{ print $1 }` and `${HOME}`
are left alone. Rule 2: a value never becomes shell code. Text of letters, digits and
`_@%+=:,./-` is put in as it is, since the shell gives those no meaning anywhere. Any other value is
quoted, and only if we know that the shell reads plain words; inside quotes, in a here-document and
wherever else quoting could be undone, it is refused. That goes for sh and bash: bash evaluates what
it takes for a number or the index of an array, code in it included, however it is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
# One of several files: by its number, or by its name.
_PART = r"(?:inputs?|outputs?)(?:\[[^\[\]{}\s]*\]|\.[A-Za-z0-9_]+)"
_PLACEHOLDER = re.compile(rf"\{{\{{({_NAME}|{_PART})\}}\}}|(?<!\$)\{{({_NAME}|{_PART})\}}")
_HARMLESS = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")

# stands for a value: never a quote or a blank to the shell, since it is quoted or harmless
_VALUE = "\0"
# Here-documents, old command substitution, quotes with escapes, arithmetic, and what may hide
# quotes inside quotes.
_HIDING = r"<<|`|\$'|\$\"|\(\(|\$\[|\$\{(?![A-Za-z_][A-Za-z0-9_]*\})|\\\n[ \t]*#"
# Numbers and indices of arrays in bash: anywhere after these words, or as an argument of those.
_COUNTING = r"|\[\[|\]\+?=|\b(?:let|declare|typeset|local)\b"
_COUNTING += rf"|(?:\b(?:read|unset|trap|printf\s+-v|test\b[^;&|]*\s-v)\b|\[[^;&|]*\s-v\b)(?:\\\n|[^\n;&|<>])*{_VALUE}"  # noqa: E501
_UNJUDGED = re.compile(_HIDING + _COUNTING)
_BEFORE_COMMENT = " \t\n;&|()<>"


class UnsafePlaceError(ValueError):
    """A value that is not harmless stands where quoting cannot protect it."""

    def __init__(self, name: str, value: str) -> None:
        self.name = name
        self.value = value
        super().__init__(f"{name}={value!r}")


@dataclass(frozen=True, slots=True)
class Template:
    """Text in pieces: between two literals stands the placeholder of that number."""

    literals: tuple[str, ...]
    names: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> Template:
        """The pieces of the text."""
        literals = [""]
        names = []
        end = 0
        for found in _PLACEHOLDER.finditer(text):
            literals[-1] += text[end : found.start()]
            if found[2] is None:
                literals[-1] += "{" + found[1] + "}"
            else:
                names.append(found[2])
                literals.append("")
            end = found.end()
        literals[-1] += text[end:]
        return Template(tuple(literals), tuple(names))

    @property
    def lone_name(self) -> str | None:
        """The placeholder's name, if the text is one placeholder and nothing else."""
        if len(self.names) == 1 and self.literals == ("", ""):
            return self.names[0]
        return None

    def after(self, change: Callable[[str], str]) -> Template:
        """The same with another beginning: what this makes of its first literal."""
        return Template((change(self.literals[0]), *self.literals[1:]), self.names)

    def fill(self, values: Mapping[str, str]) -> str:
        """The text with the values in it, as they are. KeyError if one is missing."""
        if not self.names:
            return self.literals[0]
        parts = [self.literals[0]]
        for name, literal in zip(self.names, self.literals[1:], strict=True):
            parts += (values[name], literal)
        return "".join(parts)


@dataclass(frozen=True, slots=True)
class ShellTemplate:
    """A template of shell code; `plain` says of each placeholder whether the shell reads plain
    words there."""

    template: Template
    plain: tuple[bool, ...]

    @staticmethod
    def of(template: Template, *, knows_quotes: bool = True) -> ShellTemplate:
        """The template, with the places of its placeholders judged. Other languages do not know the
        shell's quotes."""
        if knows_quotes:
            plain = _plain_places(template.literals)
        else:
            plain = (False,) * len(template.names)
        return ShellTemplate(template, plain)

    def fill(self, values: Mapping[str, Sequence[str]], sought: str = "") -> tuple[str, list[int]]:
        """The code with each placeholder's words in it. UnsafePlaceError if a word cannot be
        kept a word.

        Also where, in the words of the placeholder `sought`, the last part of each path begins:
        harmless text that is put in there becomes part of the path.
        """
        literals = self.template.literals
        code = literals[0]
        places = []
        for name, plain, literal in zip(self.template.names, self.plain, literals[1:], strict=True):
            for number, value in enumerate(values[name]):
                harmless = _HARMLESS.fullmatch(value) is not None
                if not harmless and not plain:
                    raise UnsafePlaceError(name, value)
                if number:
                    code += " "
                if name == sought:
                    folder = value[: value.rfind("/") + 1]
                    if not harmless:
                        folder = f"'{_quoted_inside(folder)}"
                    places.append(len(code) + len(folder))
                if harmless:
                    code += value
                else:
                    code += f"'{_quoted_inside(value)}'"
            code += literal
        return code, places


def _quoted_inside(value: str) -> str:
    """What stands between single quotes for this value."""
    return value.replace("'", "'\"'\"'")


def _plain_places(literals: Sequence[str]) -> tuple[bool, ...]:
    """Of each gap between literals, whether the shell is then outside quotes and comments. False
    if in doubt.

    The code is followed character by character, as far as its quotes go. Doubt, once there, stays.
    """
    if _UNJUDGED.search(_VALUE.join(literals)) or _UNJUDGED.search(
        "".join(literals)
    ):  # a list may be empty
        return (False,) * (len(literals) - 1)
    state = ""  # plain, or the quote that is open, or # in a comment
    escaped = doubt = False
    now = "\n"
    plain: list[bool] = []
    for literal in literals[:-1]:
        for place, character in enumerate(literal + _VALUE):
            if place == len(literal):
                plain.append(not (state or escaped or doubt))
            before = now
            now = character
            if escaped:
                escaped = False
                now = "\\"  # what is escaped separates nothing
                doubt |= character == _VALUE
                continue
            match state, character:
                case (("" | '"'), "\\"):
                    escaped = True
                case "", ("'" | '"'):
                    state = character
                case "", "#" if before in _BEFORE_COMMENT:
                    state = "#"
                case "", "#" if before == _VALUE:
                    doubt = True  # a comment only if there are no words in place of the placeholder
                case ("'", "'") | ('"', '"') | ("#", "\n"):
                    state = ""
                case '"', "(" if before == "$":
                    doubt = True  # quotes start afresh in there
    return tuple(plain)
