"""Which nodes of a partition the profile's jobs may have: those with its features, in its
reservation, on its lists.

Rule 1: features are combined from left to right, `&` and `|` alike, as Slurm does it (seen with
22.05); of alternatives in brackets, all nodes of a job must have the same one, so the one that most
nodes have counts.
Rule 2: what cannot be read here rules out no node: a feature with a count, a list in a file, a
reservation that Slurm does not show.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from windrow.queues.port import QueueError
from windrow.queues.slurm.profile import SlurmProfile
from windrow.queues.slurm.text import SlurmNode, parse_hosts, parse_record

Ask = Callable[[Sequence[str]], str]
_TOKEN = re.compile(r"[A-Za-z0-9_.:=-]+|[&|()]|\*\d+")
_BRACKETS = re.compile(r"\[([^\[\]*]+)\](?!\*)")


def pool(ask: Ask, nodes: Sequence[SlurmNode], profile: SlurmProfile) -> list[SlurmNode]:
    """Those of the nodes that one job of the profile may have."""
    listed, excluded = (set(_hosts(ask, profile.value(name))) for name in ("nodelist", "exclude"))
    reserved = set(_reserved(ask, profile.value("reservation")))
    able = [node for node in nodes if node.name not in excluded]
    for names in filter(None, (listed, reserved)):
        able = [node for node in able if node.name in names]
    return with_features(able, profile.constraint)


def with_features(nodes: Sequence[SlurmNode], expression: str) -> list[SlurmNode]:
    """The nodes that have the features; all if the expression cannot be read."""
    if not expression:
        return list(nodes)
    each = (
        [node for node in nodes if _holds(one, node.features)]
        for one in _without_brackets(expression)
    )
    return max(each, key=len)


def _without_brackets(expression: str) -> Iterator[str]:
    """The expressions of which one must hold for all nodes of a job."""
    match = _BRACKETS.search(expression)
    if match is None:
        yield expression
        return
    for one in match[1].split("|") if "(" not in match[1] else [match[1]]:
        yield from _without_brackets(
            f"{expression[: match.start()]}({one}){expression[match.end() :]}"
        )


def _holds(expression: str, features: frozenset[str]) -> bool:
    tokens = _TOKEN.findall(expression)
    if "".join(tokens) != expression:
        return True
    try:
        value, rest = _value(tokens, features)
    except (IndexError, ValueError):
        return True
    return value or bool(rest)


def _value(tokens: Sequence[str], features: frozenset[str]) -> tuple[bool, Sequence[str]]:
    """Whether what stands before the next closing parenthesis holds, and what follows."""
    value, tokens = _term(tokens, features)
    while tokens and tokens[0] in "&|":
        other, rest = _term(tokens[1:], features)
        if tokens[0] == "&":
            value = value and other
        else:
            value = value or other
        tokens = rest
    return value, tokens


def _term(tokens: Sequence[str], features: frozenset[str]) -> tuple[bool, Sequence[str]]:
    if tokens[0] == "(":
        value, tokens = _value(tokens[1:], features)
        if tokens[0] != ")":
            raise ValueError(tokens[0])
    elif tokens[0] in "&|)" or tokens[0].startswith("*"):
        raise ValueError(tokens[0])
    else:
        value = tokens[0] in features
    tokens = tokens[1:]
    if tokens and tokens[0].startswith("*"):  # this many of its nodes: others need not have it
        return True, tokens[1:]
    return value, tokens


def _hosts(ask: Ask, text: str) -> Iterable[str]:
    """The nodes of a list; none if it is a file's name, or cannot be read."""
    if not text or "/" in text:
        return ()
    return parse_hosts(text) or ask(["scontrol", "show", "hostnames", text]).split()


def _reserved(ask: Ask, names: str) -> Iterator[str]:
    for name in filter(None, names.split(",")):
        try:
            record = parse_record(ask(["scontrol", "-o", "show", "reservation", name]))
        except QueueError:  # there is none: Slurm will say so when it is asked for a job
            continue
        if (hosts := record.get("Nodes", "(null)")) != "(null)":
            yield from _hosts(ask, hosts)
