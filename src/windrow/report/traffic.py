"""What a command does to files, as tables (for the terminal, too) and as a page with plots."""

from collections.abc import Sequence
from typing import Any

from windrow.files import table_beside
from windrow.model.size import format_size
from windrow.model.trace import KINDS
from windrow.model.wording import span
from windrow.profile.summary import MB, SERVERS_MB_S
from windrow.report.page import Block, figure, html_table, note, notes, page, section
from windrow.report.plot import Axis, Frame, axes, count_axis, legend, line, picture, share_axis, time_axis

_MOST_FILES = 20
_RATIOS = {"cpu_io": "M instr/MB", "cpu_s_per_mb": "CPU s/MB", "mem_cpu": "MB/MIPS", "instr_per_op": "instr/operation"}
_FILE = ("read_bytes", "written_bytes", "unique_bytes", "static_bytes")
_USED = ("real", "processor", "M instr", "memory", "MB", "operations", "MB/s", "burst (s)")

Told = dict[str, Any]


def _number(value: float | None, digits: int = 2) -> str:
    return "-" if value is None else f"{value:,.{digits}f}" if abs(value) >= 0.1 or not value else f"{value:.3g}"


def blocks(told: Told) -> list[Block]:
    """The tables, in the order of those of Bent's thesis; without bytes where only files were traced."""
    texts, has_bytes = table_beside(__file__), told["detail"] == "bytes"
    rows = [*told["stages"], *(told["totals"] if len(told["stages"]) > len(told["totals"]) else ())]
    names = [f"{row['pipeline']}: {row['name']}" if len(told["totals"]) > 1 else row["name"] for row in rows]
    amounts = ("files", "traffic", "unique", "static") if has_bytes else ("files", "static")

    def table(key: str, head: Sequence[str], cells: list[list[str]]) -> Block:
        return plain(key, ("stage", *head), tuple((n, *c) for n, c in zip(names, cells, strict=True)))

    def plain(key: str, head: tuple[str, ...], cells: tuple[tuple[str, ...], ...]) -> Block:
        title, words = texts[key]
        return Block(title, words, head, cells)

    def volumes(row: Sequence[Told]) -> list[str]:
        return [str(part[a]) if a == "files" else f"{part[a] / MB:,.2f}" for part in row for a in amounts]

    roles = [role for role in rows[0]["roles"] if any(row["roles"][role]["files"] for row in rows)]
    heads = [f"{part}{amount}" for part in ("", "r.", "w.") for amount in amounts]
    role_heads = [f"{role[0].upper()}.{amount}" for role in roles for amount in amounts]
    kinds = [[f"{n:,} ({n / max(1, row['operations']):.0%})" for n in row["kinds"].values()] for row in rows]
    ratios = [[_number(row[key]) for key in _RATIOS] for row in rows]
    servers = [f"{name} ({speed} MB/s)" for name, speed in SERVERS_MB_S.items()]
    fed = [["any" if n is None else _number(n or None, 1) for n in r["nodes"].values()] for r in told["scalability"]]
    feeds = ((row["discipline"], row["time"], *each) for row, each in zip(told["scalability"], fed, strict=True))
    found = [
        table("resources", _USED, [_resources(row) for row in rows]),
        table("volume", heads, [volumes([row["volume"], row["reads"], row["writes"]]) for row in rows]),
        table("operations", KINDS, kinds),
        table("roles", role_heads, [volumes([row["roles"][role] for role in roles]) for row in rows]),
        table("ratios", list(_RATIOS.values()), ratios),
        plain("scalability", ("what reaches it", "time", *servers), tuple(feeds)),
        plain("files", ("file", "role", "way", *(name[:-6] for name in _FILE)), _files(told["files"])),
    ]
    return found if has_bytes else [found[0], found[1], found[3], found[6]]


def _resources(row: Told) -> list[str]:
    times = [span(row["real_s"]), span(row["cpu_s"]) if row["cpu_s"] else "-", _number(row["minstr"] or None, 0)]
    moved = [format_size(row["memory_bytes"]), f"{row['volume']['traffic'] / MB:,.2f}", f"{row['operations']:,}"]
    return [*times, *moved, _number(row["mb_s"]), _number(row["burst_cpu_s"])]


def _files(files: list[Told]) -> tuple[tuple[str, ...], ...]:
    shown = [
        (
            file["path"],
            file["role"] + "?" * file["is_guess"],
            file["ways"],
            *(f"{file[key] / MB:,.2f}" for key in _FILE),
        )
        for file in files[:_MOST_FILES]
    ]
    more = len(files) - len(shown)
    return (*shown, *([(f"and {more:,} more", *[""] * 6)] if more else []))


def traffic_page(name: str, told: Told, lead: str) -> str:
    """The page of a profile."""
    texts = table_beside(__file__)
    parts = [section("What it means", notes(told["verdicts"]), notes(told["warnings"]))]
    parts += [section(block.title, note(block.words), html_table(block)) for block in blocks(told)]
    curves = {"caches": told["caches"], "sizes": {"reads and writes": told["operation_sizes"]}}
    for key, lines in curves.items():
        if drawn := {each: list(zip(*points, strict=True)) for each, points in lines.items() if points}:
            highest = max(10, *(points[0][-1] for points in drawn.values()))
            powers = [10**k for k in range(0, 16, 2) if 10**k <= highest]
            axis = Axis(1, highest, tuple((power, format_size(power)) for power in powers), "bytes", log=True)
            parts.append(section(texts[key][0], _plot(drawn, axis, share_axis(), texts[key][1])))
    times, rates = told["timeline"]["s"], told["timeline"]["mb_s"]
    if rates:
        most = count_axis(max(map(max, rates.values())), "MB/s")
        drawn = {role: [times, rate] for role, rate in rates.items()}
        title, words = texts["timeline"]
        parts.append(section(title, _plot(drawn, time_axis(0, times[-1], "from the start"), most, words)))
    return page(name, lead, parts)


def _plot(lines: dict[str, list[Any]], across: Axis, up: Axis, caption: str) -> str:
    frame = Frame(60, 12, 620, 220, across, up)
    drawn = [line(frame, x, y, i) for i, (x, y) in enumerate(lines.values())]
    return figure(picture(700, 280, caption, [axes(frame), *drawn]), caption, legend(list(lines), marks=False))
