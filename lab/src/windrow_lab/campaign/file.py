"""A campaign as a TOML file: what to try, as lists. `example.toml` shows every key.

Laws. Paths count from the file's own folder. Any value of a table `[[logs]]`, `[[workflows]]` or
`[[strategies]]` may be a list; then each combination is one entry. Everything is read, drawn and
fitted together once before anything runs, so that a mistake shows at once, with its file and line,
and not after an hour.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from windrow.app.strategies import STRATEGIES
from windrow.errors import UserError, unknown_name
from windrow.formats.disk import AnyPath, bare_name
from windrow.formats.failure_log import read_failures
from windrow.model import format_duration
from windrow.model.bounds import COUNT_MAX
from windrow.model.failures import Failures
from windrow.model.site import Site
from windrow.sim.settings import REQUESTS
from windrow.strategies import Work, whole_seconds
from windrow_lab.campaign import entries
from windrow_lab.campaign.campaign import Campaign
from windrow_lab.campaign.sources import LogSource, WorkflowSource
from windrow_lab.campaign.sweep import Part, Sweep
from windrow_lab.campaign.toml_tables import TomlTable, is_number, is_whole, read_toml

_TIMES_MAX = 1_000_000


def read_campaign(path: AnyPath) -> Sweep:
    """The campaigns that the file asks for, checked. InputError with file, line and key where it
    cannot be used."""
    file = read_toml(path)
    top = TomlTable(file, dict(file.values))
    name = _name(top, path)
    submit_s = _submit_s(top)
    logs = entries.entries(top, "logs", "file", entries.logs)
    least_nodes = min(_checked_log(top, table, source, submit_s[-1]) for table, source in logs)
    workflows = entries.entries(top, "workflows", "file", entries.workflows)
    strategies = entries.entries(top, "strategies", "strategy", entries.strategies, [*STRATEGIES])
    rules = entries.entries(top, "policies", "policy", entries.rules, ["conservative"])
    varied = _varied(top, least_nodes)
    with top.telling():
        campaign = Campaign(
            name,
            logs=tuple(source for _, source in logs),
            workflows=tuple(_fitted(table, source, least_nodes) for table, source in workflows),
            submit_s=submit_s,
            strategies=tuple(strategy for _, strategy in strategies),
            requests=_requests(top),
            rules=tuple(rule for _, rule in rules),
            caps=tuple(_wholes(top, "caps", [16], 1)),
            seeds=_seeds(top, is_drawn=varied.is_drawn),
            noise=max(varied.noises),
            failures=varied.most_failures,
        )
    top.finish()
    return Sweep(name, tuple(varied.parts(campaign)))


@dataclass(frozen=True, slots=True)
class _Varied:
    """What a file lists of margins, of noise, and of failures by their text."""

    margins: Sequence[float]
    noises: Sequence[float]
    failures: Mapping[str, Failures]

    @property
    def is_drawn(self) -> bool:
        """Whether anything depends on a seed."""
        return any(self.noises) or any(one.is_drawn for one in self.failures.values())

    @property
    def most_failures(self) -> Failures:
        """Those that need seeds, if there are such, or else any at all."""
        return max(self.failures.values(), key=lambda one: (one.is_drawn, bool(one)))

    def parts(self, campaign: Campaign) -> Iterator[Part]:
        """The campaign with each of them."""
        for margin, noise, text in product(self.margins, self.noises, self.failures):
            failing = self.failures[text]
            seeds = campaign.seeds
            if not noise and not failing.is_drawn:  # all seeds would give the same trials
                seeds = seeds[:1]
            terms = (("margin", margin),)
            chosen = replace(campaign, noise=noise, failures=failing, seeds=seeds, terms=terms)
            yield Part(margin, noise, text, chosen)


def _varied(top: TomlTable, least_nodes: int) -> _Varied:
    margins = _numbers(top, "margins", [1.1], 1, 100)
    noises = _numbers(top, "noise", [0.0], 0, 5)
    return _Varied(margins, noises, _failures(top, least_nodes))


def _name(top: TomlTable, path: AnyPath) -> str:
    name = top.text("name", bare_name(path))
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}", name):
        fix = 'give name = "..." of letters, digits, dots, dashes and underscores'
        raise top.fault("name", f"{name!r} cannot be the name of a table's file", fix)
    return name


def _submit_s(top: TomlTable) -> tuple[int, ...]:
    """Times as a list, or as first, last and gap."""
    given = top.take("submit")
    if given is None:
        fix = 'give times, like submit = ["1d", "36h"] or {from, to, every}'
        raise top.fault("submit", "it is missing", fix)
    if isinstance(given, dict):
        return _span_s(top, given)
    return tuple(sorted({int(top.seconds("submit", one)) for one in top.several("submit", [])}))


def _span_s(top: TomlTable, given: dict[str, Any]) -> tuple[int, ...]:
    span = TomlTable(top.file, given, "submit")
    first, last, gap = (span.duration_s(key) for key in ("from", "to", "every"))
    span.finish()
    if first is None or last is None or gap is None:
        raise top.fault("submit", "from, to and every are needed all three")
    if gap < 1 or first > last or (last - first) / gap > _TIMES_MAX:
        raise top.fault("submit", "from must not be after to, and every be at least a second")
    return tuple(range(int(first), int(last) + 1, int(gap)))


def _requests(top: TomlTable) -> tuple[str, ...]:
    listed = top.several("requests", ["actual"])
    for value in listed:
        if not isinstance(value, str) or value not in REQUESTS:
            raise top.fault("requests", str(unknown_name("kind of requests", str(value), REQUESTS)))
    return tuple(listed)


def _failures(top: TomlTable, nodes: int) -> dict[str, Failures]:
    """By their text."""
    found: dict[str, Failures] = {}
    for text in top.several("failures", ["none"]):
        try:
            found[str(text)] = read_failures(str(text), Path(top.file.path).absolute().parent)
            found[str(text)].draw(
                0, nodes, 0, 1
            )  # refuses a node that the smallest cluster does not have
        except UserError as error:
            raise top.fault("failures", str(error).removeprefix("failures ")) from None
    return found


def _seeds(top: TomlTable, *, is_drawn: bool) -> tuple[int, ...]:
    seeds = _wholes(top, "seeds", [0], 0)
    if len(seeds) > 1 and not is_drawn:
        fix = "set noise or failures, or give one seed"
        raise top.fault("seeds", "several seeds change nothing without noise or failures", fix)
    return tuple(seeds)


def _wholes(top: TomlTable, key: str, default: list[int], least: int) -> list[int]:
    listed = top.several(key, default)
    if not all(is_whole(value) and least <= value <= COUNT_MAX for value in listed):
        raise top.fault(key, f"must be whole numbers from {least} to {COUNT_MAX:,}")
    return listed


def _numbers(
    top: TomlTable, key: str, default: list[float], least: float, most: float
) -> list[float]:
    listed = top.several(key, default)
    if not all(is_number(value) and least <= value <= most for value in listed):
        raise top.fault(key, f"must be numbers from {least} to {most}")
    if len(set(listed)) < len(listed):
        raise top.fault(key, "a value occurs twice")
    return [float(value) for value in listed]


def _checked_log(top: TomlTable, table: TomlTable, source: LogSource, last_submit_s: int) -> int:
    """The size of the log's machine, after a check that the times lie within: beyond, a log would
    only run dry."""
    with table.telling():
        log = source.load("actual")
    last = int(log.submit_s[-1] - log.submit_s[0])
    if last_submit_s > last:
        words = (
            f"{format_duration(last_submit_s)} is after the end of log {source.name}, whose "
            "last job is submitted"
        )
        raise top.fault(
            "submit", f"{words} {format_duration(last)} after its first", "give earlier times"
        )
    return log.machine_nodes


def _fitted(table: TomlTable, source: WorkflowSource, nodes: int) -> WorkflowSource:
    """The source with its true size, after a check that the smallest cluster can run each task."""
    with table.telling():
        workflow = source.load()
        Work(workflow, whole_seconds(workflow), Site.of(nodes))
    if source.path:
        return replace(source, tasks=len(workflow))
    return source
