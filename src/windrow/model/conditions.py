"""Conditions over named attributes: `gpu == 'a100' && memory >= 128GiB`. Standard library only.

    condition = all { "||" all }        all = one { "&&" one }
    one       = "!" one | "(" condition ")" | NAME ("==" | "!=" | "<" | "<=" | ">" | ">=") value
    value     = a number, a size such as 128GiB, a word, or 'text'

Rule 1: case does not matter, neither of names nor of texts. Rule 2: a comparison with an attribute
that is missing, or of another type than the value, does not hold; `!=` is the opposite of `==`.
Rule 3: an error points at the character.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

from windrow.errors import InputError, UserError
from windrow.model.size import parse_size

Value = float | str
Attributes = Mapping[str, Value]
"""Values by name; names are in lower case."""

_TOKEN = re.compile(
    r"(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+(?![\w.]))?[A-Za-z]*)|(?P<word>[A-Za-z_][\w.]*)"
    r"|(?P<text>'[^'\n]*'|\"[^\"\n]*\")|(?P<sign>&&|\|\||[=!<>]=|[][(){}:=<>!+*/-])"
)
_TESTS: Mapping[str, Callable[[Any, Any], bool]] = {
    **{"==": operator.eq, "!=": operator.ne},
    **{"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge},
}
_DEEPEST = 40
_SHOWN = 100


@dataclass(frozen=True, slots=True)
class Compared:
    """An attribute beside a value; `text` is how it was written."""

    name: str
    sign: str
    value: Value
    text: str

    def holds(self, attributes: Attributes) -> bool:
        """Whether something with these attributes is meant."""
        there = attributes.get(self.name)
        if there is None or isinstance(there, str) != isinstance(self.value, str):
            return self.sign == "!="
        return _TESTS[self.sign](_caseless(there), _caseless(self.value))


@dataclass(frozen=True, slots=True)
class Joined:
    """Conditions under one sign: all of them (`&&`), at least one (`||`), or not this one (`!`)."""

    sign: str
    parts: tuple[Condition, ...]
    text: str

    def holds(self, attributes: Attributes) -> bool:
        """Whether something with these attributes is meant."""
        parts = (part.holds(attributes) for part in self.parts)
        # These operators know arrays of attributes, too.
        if self.sign == "!":
            return next(parts) ^ True
        if self.sign == "&&":
            return reduce(operator.and_, parts)
        return reduce(operator.or_, parts)


Condition = Compared | Joined


def conjuncts(condition: Condition | None) -> tuple[Condition, ...]:
    """The parts that all have to hold, in the order in which they were written."""
    if condition is None:
        return ()
    if isinstance(condition, Joined) and condition.sign == "&&":
        return condition.parts
    return (condition,)


def _caseless(value: Value) -> Value:
    if isinstance(value, str):
        return value.casefold()
    return value


def parse_condition(text: str, file: str = "condition", line: int = 1) -> Condition:
    """The condition in a text, which begins at this line of this file. InputError, pointing at the
    character."""
    source = Scanner(text, file, line)
    found = read_condition(source)
    source.need("", "the end, or && or ||")
    return found


class Scanner:
    """A text, token by token: `kind` and `token` are what comes next, at the place `at`; nothing
    after the end."""

    def __init__(self, text: str, file: str, line: int = 1) -> None:
        self.text = text
        self._file = file
        self._line = line
        self._depth = 0
        self.kind = ""
        self.token = ""
        self.at = 0
        self.end = 0
        self._advance()

    def take(self, *tokens: str) -> str:
        """The next token, if it is one of these; else nothing is taken."""
        if self.token in tokens and self.kind != "text":
            found = self.token
        else:
            found = ""
        if found:
            self._advance()
        return found

    def need(self, token: str, words: str = "") -> None:
        """The next token must be this one."""
        if self.token != token:
            self.any_of(words or repr(token))
        if token:
            self._advance()

    def any_of(self, what: str, *kinds: str) -> str:
        """The next token, which must be of one of these kinds."""
        if self.kind not in kinds:
            there = "the text ends here"
            if self.token:
                there = f"found {self.token!r}"
            raise self.fault(f"expected {what}", there)
        found = self.token
        self._advance()
        return found

    def value(self) -> Value:
        """The next token as a number, a size in bytes, or a text."""
        kind = self.kind
        begin = self.at
        token = self.any_of("a number, a word or a 'text'", "number", "word", "text")
        if kind != "number":
            if kind == "text":
                return token[1:-1]
            return token
        try:
            if token[-1].isalpha():
                return float(parse_size(token))
            return float(token)
        except UserError as error:
            raise self.fault(str(error), at=begin) from None

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """For what may contain itself."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.fault(f"nested deeper than {_DEEPEST}", "simplify it")
        yield
        self._depth -= 1

    def fault(self, problem: str, fix: str = "", at: int | None = None) -> InputError:
        """The error for what comes next, or is at that place, with a caret under its first
        character."""
        if at is None:
            at = self.at
        begin = self.text.rfind("\n", 0, at) + 1
        column = at - begin
        left = max(0, at - begin - _SHOWN // 2)
        shown = self.text[begin:].split("\n", 1)[0].replace("\t", " ")[left : left + _SHOWN]
        words = f"character {column + 1}: {problem}"
        if fix:
            words += f"; {fix}"
        words += f"\n  {shown}\n  {' ' * (column - left)}^"
        return InputError(self._file, words, line=self._line + self.text.count("\n", 0, at))

    def fault_in(self, begin: int, word: str, problem: str) -> InputError:
        """The error for the first place behind `begin` where this word is, in whatever case."""
        found = (token for token in _TOKEN.finditer(self.text, begin) if token.lastgroup == "word")
        return self.fault(
            problem, at=next((one.start() for one in found if one[0].lower() == word), begin)
        )

    def _advance(self) -> None:
        self.end = self.at + len(self.token)
        self.at = len(self.text) - len(self.text[self.end :].lstrip())
        found = _TOKEN.match(self.text, self.at)
        if found is not None:
            self.kind = found.lastgroup or ""
            self.token = found[0]
        elif self.at == len(self.text):
            self.kind = "end"
            self.token = ""
        elif self.text[self.at] in "'\"":
            raise self.fault("this text does not end")
        else:
            raise self.fault(f"{self.text[self.at]!r} is not expected here")


def read_condition(source: Scanner) -> Condition:
    """The condition that comes next."""
    return _joined(source, "||", lambda: _joined(source, "&&", lambda: _one(source)))


def _joined(source: Scanner, sign: str, read: Callable[[], Condition]) -> Condition:
    begin = source.at
    parts = [read()]
    while source.take(sign):
        parts.append(read())
    if len(parts) == 1:
        return parts[0]
    return Joined(sign, tuple(parts), source.text[begin : source.end])


def _one(source: Scanner) -> Condition:
    begin = source.at
    with source.deeper():
        if source.take("!"):
            part = _one(source)
            return Joined("!", (part,), source.text[begin : source.end])
        if source.take("("):
            found = read_condition(source)
            source.need(")")
            return found
        name = source.any_of("the name of an attribute", "word")
        sign = source.take(*_TESTS)
        if not sign:
            raise source.fault(
                f"after {name} must be ==, !=, <, <=, > or >=", "compare it with a value"
            )
        at = source.at
        value = source.value()
        if isinstance(value, str) and sign not in ("==", "!="):
            raise source.fault(f"{sign} compares numbers only", "use == or !=", at=at)
        return Compared(name.lower(), sign, value, source.text[begin : source.end])
