"""What a command does to files, as tables (for the terminal, too) and as a page with plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from windrow.files import table_beside
from windrow.model.size import format_size
from windrow.model.trace import KINDS
from windrow.model.wording import percent, span
from windrow.profile.summary import MB, SERVERS_MB_S
from windrow.report.page import Block, figure, html_table, note, notes, page, section
from windrow.report.plot import (
    Axis,
    Frame,
    axes,
    count_axis,
    legend,
    line,
    picture,
    share_axis,
    time_axis,
)

_MOST_FILES = 20
_RATIOS = {
    "cpu_io": "M instr/MB",
    "cpu_s_per_mb": "CPU s/MB",
    "mem_cpu": "MB/MIPS",
    "instr_per_op": "instr/operation",
}
_FILE = ("read_bytes", "written_bytes", "unique_bytes", "static_bytes")
_UNKNOWN = "-"
_NAMES = ("stage", "what reaches it", "time", "file", "role", "way")
"""Columns that name what a row is about."""
_USED = ("real", "processor", "M instr", "memory", "MB", "operations", "MB/s", "burst (s)")

Told = dict[str, Any]


def _number(value: float | None, digits: int = 2) -> str:
    if value is None:
        return _UNKNOWN
    if abs(value) >= 0.1 or not value:
        return f"{value:,.{digits}f}"
    return f"{value:.3g}"


def blocks(told: Told) -> list[Block]:
    """The tables, in the order of those of Bent's thesis; without bytes if only files were
    traced."""
    stages = _Stages.of(told)
    made = [stages.resources(), stages.volume(), stages.roles(), _used_files(told)]
    if told["detail"] == "bytes":
        made = _of_bytes(told, stages)
    return [known for block in made if (known := _known(block)).rows]


def _known(block: Block) -> Block:
    """Without rows and columns of which nothing is known: those that say only `-` beside names."""
    places = range(len(block.head))
    numbers = [i for i in places if any(row[i][:1].isdecimal() for row in block.rows)]
    names = [i for i in places if block.head[i] in _NAMES]
    rows = [row for row in block.rows if any(row[i] != _UNKNOWN for i in numbers)]
    kept = [i for i in places if i in names or any(row[i] != _UNKNOWN for row in rows)]
    shown = tuple(tuple(row[i] for i in kept) for row in rows if numbers)
    return replace(block, head=tuple(block.head[i] for i in kept), rows=shown)


def _of_bytes(told: Told, stages: _Stages) -> list[Block]:
    return [
        stages.resources(),
        stages.volume(),
        stages.operations(),
        stages.roles(),
        stages.ratios(),
        _scalability(told),
        _used_files(told),
    ]


@dataclass(frozen=True, slots=True)
class _Stages:
    """Stages, and the totals of their pipelines, as rows of tables; `amounts`: what is known of
    what they move."""

    rows: Sequence[Told]
    names: Sequence[str]
    amounts: Sequence[str]

    @classmethod
    def of(cls, told: Told) -> _Stages:
        """A total is left out if it is that of a single stage."""
        rows = list(told["stages"])
        if len(told["stages"]) > len(told["totals"]):
            rows += told["totals"]
        names = [row["name"] for row in rows]
        if len(told["totals"]) > 1:
            names = [f"{row['pipeline']}: {row['name']}" for row in rows]
        if told["detail"] == "bytes":
            return cls(rows, names, ("files", "traffic", "unique", "static"))
        return cls(rows, names, ("files", "static"))

    def resources(self) -> Block:
        return self._table("resources", _USED, [_resources(row) for row in self.rows])

    def volume(self) -> Block:
        heads = [f"{part}{amount}" for part in ("", "r.", "w.") for amount in self.amounts]
        parts = ([row["volume"], row["reads"], row["writes"]] for row in self.rows)
        return self._table("volume", heads, [self._volumes(each) for each in parts])

    def operations(self) -> Block:
        cells = []
        for row in self.rows:
            every = max(1, row["operations"])
            cells.append([f"{n:,} ({percent(n / every)})" for n in row["kinds"].values()])
        return self._table("operations", KINDS, cells)

    def roles(self) -> Block:
        roles = [
            role
            for role in self.rows[0]["roles"]
            if any(row["roles"][role]["files"] for row in self.rows)
        ]
        heads = [f"{role[0].upper()}.{amount}" for role in roles for amount in self.amounts]
        parts = ([row["roles"][role] for role in roles] for row in self.rows)
        return self._table("roles", heads, [self._volumes(each) for each in parts])

    def ratios(self) -> Block:
        cells = [[_number(row[key]) for key in _RATIOS] for row in self.rows]
        return self._table("ratios", list(_RATIOS.values()), cells)

    def _table(self, key: str, head: Sequence[str], cells: Sequence[Sequence[str]]) -> Block:
        rows = tuple((name, *each) for name, each in zip(self.names, cells, strict=True))
        return _block(key, ("stage", *head), rows)

    def _volumes(self, parts: Sequence[Told]) -> list[str]:
        cells = []
        for part in parts:
            for amount in self.amounts:
                if amount == "files":
                    cells.append(str(part[amount]))
                else:
                    cells.append(f"{part[amount] / MB:,.2f}")
        return cells


def _block(key: str, head: tuple[str, ...], cells: tuple[tuple[str, ...], ...]) -> Block:
    title, words = table_beside(__file__)[key]
    return Block(title, words, head, cells)


def _scalability(told: Told) -> Block:
    servers = [f"{name} ({speed} MB/s)" for name, speed in SERVERS_MB_S.items()]
    rows = (
        (row["discipline"], row["time"], *map(_nodes, row["nodes"].values()))
        for row in told["scalability"]
    )
    return _block("scalability", ("what reaches it", "time", *servers), tuple(rows))


def _nodes(count: float | None) -> str:
    """How many nodes a server feeds."""
    if count is None:
        return "any"
    return _number(count or None, 1)


def _used_files(told: Told) -> Block:
    amounts = (name.removesuffix("_bytes") for name in _FILE)
    return _block("files", ("file", "role", "way", *amounts), _files(told["files"]))


def _resources(row: Told) -> list[str]:
    processor = _UNKNOWN
    if row["cpu_s"]:
        processor = span(row["cpu_s"])
    return [
        span(row["real_s"]),
        processor,
        _number(row["minstr"] or None, 0),
        format_size(row["memory_bytes"]),
        f"{row['volume']['traffic'] / MB:,.2f}",
        f"{row['operations']:,}",
        _number(row["mb_s"]),
        _number(row["burst_cpu_s"]),
    ]


def _files(files: list[Told]) -> tuple[tuple[str, ...], ...]:
    rows: list[tuple[str, ...]] = []
    for file in files[:_MOST_FILES]:
        role = file["role"]
        if file["is_guess"]:
            role += "?"
        sizes = (f"{file[key] / MB:,.2f}" for key in _FILE)
        rows.append((file["path"], role, file["ways"], *sizes))
    if len(files) > len(rows):
        rows.append((f"and {len(files) - len(rows):,} more", *[""] * 6))
    return tuple(rows)


def traffic_page(name: str, told: Told, lead: str) -> str:
    """The page of a profile."""
    parts = [section("What it means", notes(told["verdicts"]), notes(told["warnings"]))]
    parts += [section(block.title, note(block.words), html_table(block)) for block in blocks(told)]
    parts += _by_size("caches", told["caches"])
    parts += _by_size("sizes", {"reads and writes": told["operation_sizes"]})
    if told["timeline"]["mb_s"]:
        parts.append(_timeline(told["timeline"]["s"], told["timeline"]["mb_s"]))
    return page(name, lead, parts)


def _by_size(key: str, lines: dict[str, Any]) -> list[str]:
    """Shares over sizes; nothing if there are none."""
    drawn = {each: list(zip(*points, strict=True)) for each, points in lines.items() if points}
    if not drawn:
        return []
    title, words = table_beside(__file__)[key]
    highest = max(10, *(points[0][-1] for points in drawn.values()))
    ticks = ((10**k, format_size(10**k)) for k in range(0, 16, 2) if 10**k <= highest)
    axis = Axis(1, highest, tuple(ticks), "bytes", log=True)
    return [section(title, _plot(drawn, axis, share_axis(), words))]


def _timeline(times: Sequence[float], rates: dict[str, list[float]]) -> str:
    title, words = table_beside(__file__)["timeline"]
    most = count_axis(max(map(max, rates.values())), "MB/s")
    drawn = {role: [times, rate] for role, rate in rates.items()}
    across = time_axis(0, times[-1], "from the start")
    return section(title, _plot(drawn, across, most, words))


def _plot(lines: dict[str, list[Any]], across: Axis, up: Axis, caption: str) -> str:
    frame = Frame(60, 12, 620, 220, across, up)
    drawn = [line(frame, x, y, i) for i, (x, y) in enumerate(lines.values())]
    return figure(
        picture(700, 280, caption, [axes(frame), *drawn]), caption, legend(list(lines), marks=False)
    )
