"""Descriptions of resources: the part of vgDL that Zhang's thesis uses (4.2.1, figures 4.2 and
4.3).

    description = [ NAME "=" ] aggregate
    aggregate   = ("LooseBagOf" | "TightBagOf" | "ClusterOf") "(" NAME ")" "[" least ":" most "]" { wanted }
                  "{" NAME "=" ( aggregate | wanted { wanted } ) "}"
    wanted      = "[" condition "]" | "[" "Rank" "=" expression "]"
    expression  = + - * / of numbers and attributes, and ( )

    TightBagOf(node)[1:20] { node = [Processor == OPTERON || Processor == ITANIUM] [Rank = Clock] }

A LooseBag may be any nodes, those of a TightBag are well connected, those of a Cluster are of one
cluster. Aggregates may contain aggregates. A node has the attributes Clock, Nodes (of its cluster),
Cluster (its name) and those of the grid's file; an aggregate has Nodes, Clusters, and Total_ before
an attribute of nodes. What is selected: `select.py`.
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from windrow.errors import InputError
from windrow.model.bounds import NODES_MAX
from windrow.model.conditions import Attributes, Condition, Joined, Scanner, read_condition

KINDS = {"LooseBagOf": "LooseBag", "TightBagOf": "TightBag", "ClusterOf": "Cluster"}

Expression = Callable[[Attributes], float]


@dataclass(frozen=True, slots=True)
class Requirement:
    """Conditions that must all hold, and what is to be as large as possible; `names` are all
    attributes in them.

    `fault` is the error for such a name, with these words.
    """

    conditions: tuple[Condition, ...]
    rank: Expression | None
    names: frozenset[str]
    fault: Callable[[str, str], InputError]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """From `least` to `most` members, which are nodes (`of` says which) or aggregates."""

    kind: str
    least: int
    most: int
    wanted: Requirement
    of: Aggregate | Requirement


def parse_description(text: str, file: str = "description") -> Aggregate:
    """The description in a text. InputError, pointing at the character, if there is none."""
    source = Scanner(text, file)
    if source.token not in KINDS:
        source.any_of(f"a name with =, or {', '.join(KINDS)}", "word")
        source.need("=", "= after the description's name")
    found = _aggregate(source)
    source.need("", "the end of the description")
    return found


def fastest(nodes: int) -> Aggregate:
    """The selection that the thesis calls simple: this number of the fastest nodes."""
    return parse_description(f"LooseBagOf(node)[{nodes}:{nodes}] {{ node = [Rank = Clock] }}")


def propose(ccr: float, width: int, processors: int) -> tuple[str, str, str]:
    """Of the thesis's three classes (4.2) that which suits a workflow: its name, its description,
    and why.

    Fast nodes are the smallest of its shares of the grid that has more than `width`, else as many
    as the width.
    """
    if ccr < 0.5:
        shares = [int(processors * percent / 100) for percent in (0.3, 1, 3, 7, 10)]
        k = next((share for share in shares if share > width), min(width, processors))
        text = f"LooseBagOf(node)[{k}:{k}] {{ node = [Rank = Clock] }}"
        name = "simple"
        why = "computing, so fast nodes"
    elif ccr > 2:
        text = f"TightBagOf(node)[1:{width}] {{ node = [Rank = Clock] }}"
        name = "TightBag"
        why = "moving data, so near nodes"
    else:
        inner = "TightBagOf(node)[1:500] [Rank = Nodes] { node = [Rank = Clock] }"
        text = f"LooseBagOf(bag)[1:{3 if width <= 1500 else 5}] {{ bag = {inner} }}"
        name = "LooseBag"
        why = "both, so a few large TightBags"
    return name, text, f"CCR {ccr:.3g}: time goes into {why}"


def _aggregate(source: Scanner) -> Aggregate:
    with source.deeper():
        at = source.at
        word = source.any_of(f"one of {', '.join(KINDS)}", "word")
        if word not in KINDS:
            raise source.fault(f"{word!r} is not one of {', '.join(KINDS)}", at=at)
        source.need("(")
        member = source.any_of("the name of its members", "word")
        source.need(")")
        least, most = _range(source)
        wanted = _wanted(source)
        source.need("{", "{ and what its members are")
        inner = _members(source, member)
        source.need("}")
        return Aggregate(KINDS[word], least, most, wanted, inner)


def _members(source: Scanner, name: str) -> Aggregate | Requirement:
    """What the members of an aggregate are, which are called the same again."""
    at = source.at
    again = source.any_of("the name of its members", "word")
    if again != name:
        words = f"its members are called {name!r} above, not {again!r}"
        raise source.fault(words, "use one name", at=at)
    source.need("=")
    if source.token in KINDS:
        return _aggregate(source)
    if source.token != "[":
        words = f"expected [ with a condition or a Rank, or one of {', '.join(KINDS)}"
        raise source.fault(words)
    return _wanted(source)


def _range(source: Scanner) -> tuple[int, int]:
    source.need("[", "[least:most]")
    at = source.at
    found = []
    for sign in (":", "]"):
        here = source.at
        token = source.any_of("a whole number", "number")
        if not token.isdigit() or not 1 <= int(token) <= NODES_MAX:
            raise source.fault(f"{token} is not a whole number from 1 to {NODES_MAX:,}", at=here)
        found.append(int(token))
        source.need(sign)
    if found[0] > found[1]:
        raise source.fault(
            f"the least, {found[0]:,}, is more than the most, {found[1]:,}", "exchange them", at=at
        )
    return found[0], found[1]


def _wanted(source: Scanner) -> Requirement:
    begin = source.at
    conditions = list[Condition]()
    names: set[str] = set()
    rank: Expression | None = None
    while source.take("["):
        at = source.at
        if source.token.lower() != "rank":
            conditions.append(read_condition(source))
            names |= set(_names(conditions[-1]))
        else:
            source.any_of("Rank", "word")
            if rank is not None:
                raise source.fault("there is a second Rank", "keep one", at=at)
            source.need("=")
            rank = _expression(source, names)
        source.need("]")
    return Requirement(tuple(conditions), rank, frozenset(names), partial(source.fault_in, begin))


def _names(condition: Condition) -> Iterator[str]:
    if isinstance(condition, Joined):
        for part in condition.parts:
            yield from _names(part)
    else:
        yield condition.name


def _expression(source: Scanner, names: set[str]) -> Expression:
    """A sum of products; an attribute that is missing, or is a text, counts 0, and so does what is
    divided by 0."""
    with source.deeper():
        found = partial(_number, 0.0) if source.token == "-" else _product(source, names)
        while sign := source.take("+", "-"):
            found = partial(_evaluated, sign, found, _product(source, names))
        return found


def _product(source: Scanner, names: set[str]) -> Expression:
    found = _factor(source, names)
    while sign := source.take("*", "/"):
        found = partial(_evaluated, sign, found, _factor(source, names))
    return found


def _factor(source: Scanner, names: set[str]) -> Expression:
    if source.take("("):
        found = _expression(source, names)
        source.need(")")
        return found
    if source.kind not in ("number", "word"):
        source.any_of("a number or the name of an attribute, or ( with an expression")
    value = source.value()
    names |= {value.lower()} if isinstance(value, str) else set()
    return partial(_number, value)


def _number(value: float | str, has: Attributes) -> float:
    if isinstance(value, str):
        there = has.get(value.lower(), 0.0)
    else:
        there = value
    if isinstance(there, str):
        return 0.0
    return there


def _evaluated(sign: str, left: Expression, right: Expression, has: Attributes) -> float:
    """(Numbers, or arrays of them.)"""
    a = left(has)
    b = right(has)
    if sign == "/":
        return a / (b + (b == 0)) * (b != 0)
    if sign == "+":
        return a + b
    if sign == "-":
        return a - b
    return a * b
