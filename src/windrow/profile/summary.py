"""All that a profile tells, as one value: tables by stage, pipeline and role, curves, scalability, verdicts in words.

Burst: seconds of processor for one operation, and instructions where a counter told them. Scalability: nodes that run
pipelines back to back, all I/O overlapped, until a server of so many MB/s is full; where batch or pipeline data need
not reach it, it moves fewer bytes. By time of processor (instructions at a speed, if known) and by real time.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from windrow.model.size import format_size
from windrow.model.trace import Stage
from windrow.model.wording import count
from windrow.profile.measures import BLOCK_BYTES, MILLION, Measures
from windrow.profile.roles import Roles
from windrow.storage.roles import Role

MB = 1e6
SERVERS_MB_S = {"wide area": 1, "local network": 12, "disk": 40, "storage centre": 1500}
DISCIPLINES = {
    "all": (Role.ENDPOINT, Role.PIPELINE, Role.BATCH, Role.SHARED),
    "without batch": (Role.ENDPOINT, Role.PIPELINE, Role.SHARED),
    "without pipeline": (Role.ENDPOINT, Role.BATCH, Role.SHARED),
    "endpoint only": (Role.ENDPOINT, Role.SHARED),
}
_FEW_NODES = 100  # that a server of the local network can feed: fewer than a cluster has
_CURVE_POINTS, _BINS = 200, 60
_LITTLE = 0.1  # seconds, of which no one minds how they differ


def summary(measures: Measures, roles: Roles, mips: float = 2000.0) -> dict[str, Any]:
    """Everything, ready for JSON. `mips`: of the processor that instructions are turned into time by."""
    trace = measures.trace
    rows = [_row(measures, roles, [number]) for number in range(len(trace.stages))]
    totals = [_row(measures, roles, _stages(trace.stages, p), "total") for p in range(trace.pipelines)]
    scalability = nodes(totals[0], mips)
    return {
        "detail": "bytes" if trace.has_bytes else "files",
        "stages": rows,
        "totals": totals,
        "files": _files(measures, roles),
        "scalability": scalability,
        "caches": {role: _curve(measures, roles, role) for role in (Role.BATCH, Role.PIPELINE)},
        "operation_sizes": _sizes(measures),
        "timeline": _timeline(measures, roles),
        "verdicts": verdicts(totals, scalability, has_bytes=trace.has_bytes, guesses=len(roles.guessed)),
        "warnings": roles.warnings,
    }


def _stages(stages: Sequence[Stage], pipeline: int) -> list[int]:
    return [number for number, stage in enumerate(stages) if stage.pipeline == pipeline]


def _row(measures: Measures, roles: Roles, numbers: list[int], name: str = "") -> dict[str, Any]:
    """What stages come to: times and operations add up, memory is the largest, files and bytes are unions."""
    stages, chosen = [measures.trace.stages[n] for n in numbers], np.isin(measures.stage, numbers)
    total, kinds = measures.amount(chosen), measures.kinds(np.array(numbers))
    operations, mb = sum(kinds.values()), total.traffic / MB
    real_s, cpu_s = sum(stage.real_s for stage in stages), sum(stage.cpu_s for stage in stages)
    minstr, memory_bytes = sum(stage.minstr for stage in stages), max(stage.memory_bytes for stage in stages)
    return {
        "name": name or stages[0].name,
        "pipeline": stages[0].pipeline + 1,
        "exit_code": max(abs(stage.exit_code) for stage in stages),
        "real_s": real_s,
        "cpu_s": cpu_s,
        "minstr": minstr,
        "memory_bytes": memory_bytes,
        "operations": operations,
        "kinds": kinds,
        "volume": asdict(total),
        "reads": asdict(measures.amount(chosen & ~measures.is_write)),
        "writes": asdict(measures.amount(chosen & measures.is_write)),
        "roles": {role: asdict(measures.amount(chosen & roles.uses(measures, role))) for role in Role},
        "mb_s": _ratio(mb, real_s),
        "burst_cpu_s": _ratio(cpu_s, operations),
        "burst_minstr": _ratio(minstr, operations),
        "cpu_io": _ratio(minstr, mb),
        "cpu_s_per_mb": _ratio(cpu_s, mb),
        "mem_cpu": _ratio(memory_bytes / MB, _ratio(minstr, real_s)),
        "instr_per_op": _ratio(minstr * MILLION, operations),
    }


def _ratio(one: float, other: float | None) -> float | None:
    return one / other if one and other else None


def _files(measures: Measures, roles: Roles) -> list[dict[str, Any]]:
    files, found = measures.trace.files, []
    for number, role in roles.of.items():
        uses = measures.file == number
        whole = measures.amount(uses)
        moved = (int(measures.traffic[uses & way].sum()) for way in (~measures.is_write, measures.is_write))
        ways = "".join(
            letter for letter, is_write in (("r", False), ("w", True)) if is_write in measures.is_write[uses]
        )
        facts = {"path": files.paths[number], "role": role, "is_guess": number in roles.guessed, "ways": ways}
        facts |= dict(zip(("read_bytes", "written_bytes"), moved, strict=True))
        facts |= {"unique_bytes": whole.unique, "static_bytes": whole.static, "is_new": files.made[number]}
        found.append(facts | {"is_deleted": files.gone[number], "operations": measures.by_file[number]})
    return sorted(found, key=lambda file: (-file["read_bytes"] - file["written_bytes"], -file["static_bytes"]))


def nodes(row: dict[str, Any], mips: float) -> list[dict[str, Any]]:
    """How many nodes each server can feed, by discipline and by time of processor or real time; None: any number."""
    cpu_s = row["minstr"] / mips if row["minstr"] else row["cpu_s"]
    found = []
    for discipline, counted in DISCIPLINES.items():
        mb = sum(row["roles"][role]["traffic"] for role in counted) / MB
        for base, seconds in (("cpu", cpu_s), ("real", row["real_s"])):
            fed = {name: speed * seconds / mb if mb else None for name, speed in SERVERS_MB_S.items()}
            found.append({"discipline": discipline, "time": base, "nodes": fed})
    return found


def _curve(measures: Measures, roles: Roles, role: Role) -> list[tuple[int, float]]:
    """Bytes of an LRU cache, and the share of accesses that hit in it, for some of all sizes."""
    blocks, rates = measures.cache_curve(roles.uses(measures, role))
    if not len(blocks):
        return []
    at = np.unique(np.geomspace(1, len(blocks), _CURVE_POINTS).astype(np.int64)) - 1
    return [(int(blocks[i]) * BLOCK_BYTES, float(rates[i])) for i in at]


def _sizes(measures: Measures) -> list[tuple[int, float]]:
    """Bytes of an operation, and the share of reads and writes that move at most that."""
    values, most = measures.sizes(measures.everything)
    at = np.unique(np.linspace(0, len(values) - 1, _CURVE_POINTS).astype(np.int64))
    return [(int(values[i]), float(most[i] / most[-1])) for i in at.tolist() if len(values)]


def _timeline(measures: Measures, roles: Roles) -> dict[str, Any]:
    times = measures.trace.time_s
    low, high = (float(times.min()), float(times.max())) if len(times) else (0.0, 0.0)
    edges = np.linspace(low, max(high, low + 1e-3), _BINS + 1)
    moved = {role: measures.timeline(roles.uses(measures, role), edges) / np.diff(edges) / MB for role in Role}
    return {
        "s": (edges[:-1] - low).tolist(),
        "mb_s": {role: rate.tolist() for role, rate in moved.items() if rate.any()},
    }


def verdicts(
    totals: list[dict[str, Any]], scalability: list[dict[str, Any]], *, has_bytes: bool, guesses: int
) -> list[str]:
    """What the figures mean, in sentences."""
    first, said = totals[0], []
    shared = max(total["roles"][Role.SHARED]["files"] for total in totals)
    if shared:
        said.append(f"Not a batch-pipeline workload: pipelines read what others write ({count(shared, 'file')}).")
    elif len(totals) > 1:
        batch = first["roles"][Role.BATCH]
        said.append(
            f"A batch-pipeline workload: {len(totals)} instances do not touch each other's files, and share "
            f"{count(batch['files'], 'file')} of batch data ({format_size(batch['static'])})."
        )
        said += [_difference(totals, key, what) for key, what in (("real_s", "real time"), ("cpu_s", "processor time"))]
        said.append(_difference([total["volume"] for total in totals], "traffic", "traffic"))
    else:
        said.append(
            "One instance cannot tell whether this is a batch-pipeline workload, and the roles of "
            f"{count(guesses, 'file')} that are only read are guesses; trace a second one with --again."
        )
    if has_bytes:
        for row in scalability:
            fed = row["nodes"]["local network"]
            if row["time"] == "real":
                limit = "any number of" if fed is None else f"{math.floor(fed):,}"
                judged = "data-intensive" if fed is not None and fed < _FEW_NODES else "not data-intensive"
                said.append(
                    f"{row['discipline'].capitalize()}: {judged}; a server of 12 MB/s feeds {limit} nodes (real time)."
                )
    else:
        said.append("Files were traced, not bytes: traffic and unique bytes are not known; use --detail bytes.")
    return [line for line in said if line]


def _difference(totals: list[dict[str, Any]], key: str, what: str) -> str:
    values = [total[key] for total in totals]
    mean = sum(values) / len(values)
    return f"Instances differ by {(max(values) - min(values)) / mean:.0%} in {what}." if mean > _LITTLE else ""
