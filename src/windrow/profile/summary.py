"""All that a profile tells, as one value: tables by stage, pipeline and role, curves, scalability,
verdicts in words.

Burst: seconds of processor for one operation, and instructions if a counter told them.
Scalability: nodes that run pipelines back to back, all I/O overlapped, until a server of some MB/s
is full; if batch or pipeline data need not reach it, it moves fewer bytes. By time of processor
(instructions at a speed, if known) and by real time.
"""

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from windrow.model.size import format_size
from windrow.model.trace import Trace
from windrow.model.wording import count
from windrow.profile.measures import MILLION, Measures
from windrow.profile.roles import Roles
from windrow.storage.roles import Role

MB = 1e6
SERVERS_MB_S = {"wide area": 1, "local network": 12, "disk": 40, "storage centre": 1500}
DISCIPLINES = {"all": (), "without batch": (Role.BATCH,), "without pipeline": (Role.PIPELINE,)}
DISCIPLINES |= {"endpoint only": (Role.BATCH, Role.PIPELINE)}
"""What need not reach the server."""
_FEW_NODES = 100  # that a server of the local network can feed: fewer than a cluster has
_CURVE_POINTS = 200
_BINS = 60
_TOO_SHORT_S = 1.0  # most of such a time is the start of programs
_LITTLE = 0.1  # seconds, of which no one minds how they differ

Told = dict[str, Any]


def summary(measures: Measures, roles: Roles, mips: float = 2000.0) -> Told:
    """Everything, ready for JSON. `mips`: of the processor that instructions are turned into time
    by."""
    trace = measures.trace
    of = _stages_by_pipeline(trace)
    totals = [_row(measures, roles, numbers, "total") for numbers in of]
    scalability = nodes(_without_system(totals[0], measures, roles, of[0]), mips)
    return {
        "detail": "bytes" if trace.has_bytes else "files",
        "stages": [_row(measures, roles, [n], stage.name) for n, stage in enumerate(trace.stages)],
        "totals": totals,
        "files": _files(measures, roles),
        "scalability": scalability,
        "caches": {role: _curve(measures, roles, role) for role in (Role.BATCH, Role.PIPELINE)},
        "operation_sizes": _sizes(measures),
        "timeline": _timeline(measures, roles),
        "verdicts": _verdicts(
            totals, scalability, has_bytes=trace.has_bytes, guesses=len(roles.guessed)
        ),
        "warnings": roles.warnings,
    }


def _stages_by_pipeline(trace: Trace) -> list[list[int]]:
    return [
        [n for n, stage in enumerate(trace.stages) if stage.pipeline == p]
        for p in range(trace.pipelines)
    ]


def _row(measures: Measures, roles: Roles, numbers: list[int], name: str) -> Told:
    """What stages come to: times and operations add up, memory is the largest, files and bytes are
    unions."""
    stages = [measures.trace.stages[n] for n in numbers]
    chosen = np.isin(measures.stage, numbers)
    kinds = measures.kinds(numbers)
    row: Told = {
        "name": name,
        "pipeline": stages[0].pipeline + 1,
        "real_s": sum(stage.real_s for stage in stages),
        "cpu_s": sum(stage.cpu_s for stage in stages),
        "minstr": sum(stage.minstr for stage in stages),
        "memory_bytes": max(stage.memory_bytes for stage in stages),
        "operations": sum(kinds.values()),
        "kinds": kinds,
        "volume": asdict(measures.amount(chosen)),
        "reads": asdict(measures.amount(chosen & ~measures.is_write)),
        "writes": asdict(measures.amount(chosen & measures.is_write)),
        "roles": {
            role: asdict(measures.amount(chosen & roles.uses(measures, role))) for role in Role
        },
    }
    return {**row, **_ratios(row)}


def _ratios(row: Told) -> Told:
    mb = row["volume"]["traffic"] / MB
    calls = row["operations"]
    return {
        "mb_s": _ratio(mb, row["real_s"]),
        "burst_cpu_s": _ratio(row["cpu_s"], calls),
        "burst_minstr": _ratio(row["minstr"], calls),
        "cpu_io": _ratio(row["minstr"], mb),
        "cpu_s_per_mb": _ratio(row["cpu_s"], mb),
        "mem_cpu": _ratio(row["memory_bytes"] / MB * row["real_s"], row["minstr"]),
        "instr_per_op": _ratio(row["minstr"] * MILLION, calls),
    }


def _without_system(row: Told, measures: Measures, roles: Roles, numbers: list[int]) -> Told:
    """The same without programs and libraries of the system, which each node has on its own
    disk."""
    kept = np.isin(measures.stage, numbers) & ~np.isin(measures.file, list(roles.system))
    return row | {
        "roles": {role: asdict(measures.amount(kept & roles.uses(measures, role))) for role in Role}
    }


def _ratio(one: float, other: float) -> float | None:
    if one and other:
        return one / other
    return None


def _files(measures: Measures, roles: Roles) -> list[Told]:
    files = measures.trace.files
    columns = measures.files()
    found = []
    for number, role in roles.of.items():
        figures = {name: int(column[number]) for name, column in columns.items()}
        uses = {"r": figures.pop("read_uses"), "w": figures.pop("written_uses")}
        found.append(
            {
                "path": files.paths[number],
                "role": role,
                "is_guess": number in roles.guessed,
                **figures,
                "is_new": files.made[number],
                "is_deleted": files.gone[number],
                "operations": measures.by_file[number],
                "ways": "".join(way for way, times in uses.items() if times > 0),
            }
        )
    return sorted(
        found, key=lambda file: (-file["read_bytes"] - file["written_bytes"], -file["static_bytes"])
    )


def nodes(row: Told, mips: float) -> list[Told]:
    """How many nodes each server can feed, by discipline and by time of processor or real time;
    None: any number."""
    times = {"cpu": row["minstr"] / mips or row["cpu_s"], "real": row["real_s"]}
    found = []
    for discipline, without in DISCIPLINES.items():
        mb = (
            sum(amount["traffic"] for role, amount in row["roles"].items() if role not in without)
            / MB
        )
        for base, seconds in times.items():
            fed = {
                name: speed * seconds / mb if mb else None for name, speed in SERVERS_MB_S.items()
            }
            found.append({"discipline": discipline, "time": base, "nodes": fed})
    return found


def _curve(measures: Measures, roles: Roles, role: Role) -> list[tuple[int, float]]:
    """Bytes of an LRU cache, and the share of accesses that hit in it, for some of all sizes."""
    sizes, rates = measures.cache_curve(roles.uses(measures, role))
    at = np.unique(np.geomspace(1, max(1, len(sizes)), _CURVE_POINTS).astype(np.int64)) - 1
    return [(int(sizes[i]), float(rates[i])) for i in at.tolist() if len(sizes)]


def _sizes(measures: Measures) -> list[tuple[int, float]]:
    """Bytes of an operation, and the share of reads and writes that move at most that."""
    values, most = measures.sizes(measures.everything)
    at = np.unique(np.linspace(0, len(values) - 1, _CURVE_POINTS).astype(np.int64))
    return [(int(values[i]), float(most[i] / most[-1])) for i in at.tolist() if len(values)]


def _timeline(measures: Measures, roles: Roles) -> Told:
    times = measures.trace.time_s - measures.trace.time_s.min(initial=math.inf)
    bins = max(
        1, min(_BINS, math.ceil(times.max(initial=0.0)))
    )  # of a second or more: what is moved in one is not a rate
    edges = np.linspace(
        0, max(float(bins), times.max(initial=0.0)) if bins < _BINS else times.max(), bins + 1
    )
    rates = {
        role: measures.timeline(roles.uses(measures, role), times, edges) / np.diff(edges) / MB
        for role in Role
    }
    return {
        "s": edges[:-1].tolist(),
        "mb_s": {role: rate.tolist() for role, rate in rates.items() if rate.any()},
    }


def _verdicts(
    totals: list[Told], scalability: list[Told], *, has_bytes: bool, guesses: int
) -> list[str]:
    """What the figures mean, in sentences."""
    said = [_kind_of_workload(totals, guesses), *_differences(totals)]
    if not has_bytes:
        said.append(
            "Files were traced, not bytes: traffic and unique bytes are not known; use --detail "
            "bytes."
        )
    elif totals[0]["real_s"] < _TOO_SHORT_S:
        said.append(
            f"It ran for {totals[0]['real_s']:.2g} s: too short to say how many nodes a server "
            "feeds; trace a real instance."
        )
    else:
        said += [_fed(row) for row in scalability if row["time"] == "real"]
    return said


def _kind_of_workload(totals: list[Told], guesses: int) -> str:
    shared = max(total["roles"][Role.SHARED]["files"] for total in totals)
    if shared:
        return (
            "Not a batch-pipeline workload: pipelines read what others write "
            f"({count(shared, 'file')})."
        )
    if len(totals) > 1:
        batch = totals[0]["roles"][Role.BATCH]
        return (
            f"A batch-pipeline workload: {len(totals)} instances do not touch each other's "
            f"files, and share {count(batch['files'], 'file')} of batch data "
            f"({format_size(batch['static'])})."
        )
    return (
        "One instance cannot tell whether this is a batch-pipeline workload, and the roles of "
        f"{count(guesses, 'file')} that are only read are guesses; trace a second one with "
        "--again."
    )


def _differences(totals: list[Told]) -> list[str]:
    """By how much instances differ, if there are several."""
    if len(totals) < 2:
        return []
    figures = {
        "real time": [total["real_s"] for total in totals],
        "processor time": [total["cpu_s"] for total in totals],
        "traffic": [total["volume"]["traffic"] for total in totals],
    }
    said = []
    for what, values in figures.items():
        mean = sum(values) / len(values)
        if mean > _LITTLE:
            said.append(f"Instances differ by {(max(values) - min(values)) / mean:.0%} in {what}.")
    return said


def _fed(row: Told) -> str:
    """How many nodes a server of the local network feeds."""
    fed = row["nodes"]["local network"]
    if fed is None:
        limit = "any number of nodes"
    elif fed >= 1:
        limit = f"{math.floor(fed):,} nodes"
    else:
        limit = "less than one node"
    judged = "not data-intensive"
    if fed is not None and fed < _FEW_NODES:
        judged = "data-intensive"
    return (
        f"{row['discipline'].capitalize()}: {judged}; a server of 12 MB/s feeds {limit} "
        "(real time)."
    )
