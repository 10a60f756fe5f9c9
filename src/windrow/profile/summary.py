"""All that a profile tells, as one value: tables by stage, pipeline and role, curves, scalability, verdicts in words.

Burst: seconds of processor for one operation, and instructions where a counter told them. Scalability: nodes that run
pipelines back to back, all I/O overlapped, until a server of some MB/s is full; where batch or pipeline data need
not reach it, it moves fewer bytes. By time of processor (instructions at a speed, if known) and by real time.
"""

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from windrow.model.size import format_size
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
_CURVE_POINTS, _BINS = 200, 60
_LITTLE = 0.1  # seconds, of which no one minds how they differ

Told = dict[str, Any]


def summary(measures: Measures, roles: Roles, mips: float = 2000.0) -> Told:
    """Everything, ready for JSON. `mips`: of the processor that instructions are turned into time by."""
    trace = measures.trace
    of = [[n for n, stage in enumerate(trace.stages) if stage.pipeline == p] for p in range(trace.pipelines)]
    totals = [_row(measures, roles, numbers, "total") for numbers in of]
    scalability = nodes(totals[0], mips)
    return {
        "detail": "bytes" if trace.has_bytes else "files",
        "stages": [_row(measures, roles, [n], stage.name) for n, stage in enumerate(trace.stages)],
        "totals": totals,
        "files": _files(measures, roles),
        "scalability": scalability,
        "caches": {role: _curve(measures, roles, role) for role in (Role.BATCH, Role.PIPELINE)},
        "operation_sizes": _sizes(measures),
        "timeline": _timeline(measures, roles),
        "verdicts": _verdicts(totals, scalability, has_bytes=trace.has_bytes, guesses=len(roles.guessed)),
        "warnings": roles.warnings,
    }


def _row(measures: Measures, roles: Roles, numbers: list[int], name: str) -> Told:
    """What stages come to: times and operations add up, memory is the largest, files and bytes are unions."""
    stages, chosen = [measures.trace.stages[n] for n in numbers], np.isin(measures.stage, numbers)
    total, kinds = measures.amount(chosen), measures.kinds(numbers)
    calls, mb = sum(kinds.values()), total.traffic / MB
    real_s, cpu_s, minstr = (sum(getattr(s, key) for s in stages) for key in ("real_s", "cpu_s", "minstr"))
    memory_bytes = max(stage.memory_bytes for stage in stages)
    used = {"real_s": real_s, "cpu_s": cpu_s, "minstr": minstr, "memory_bytes": memory_bytes, "operations": calls}
    ways = {"reads": ~measures.is_write, "writes": measures.is_write}
    return {
        **{"name": name, "pipeline": stages[0].pipeline + 1, **used, "kinds": kinds, "volume": asdict(total)},
        **{way: asdict(measures.amount(chosen & mask)) for way, mask in ways.items()},
        "roles": {role: asdict(measures.amount(chosen & roles.uses(measures, role))) for role in Role},
        "mb_s": _ratio(mb, real_s),
        "burst_cpu_s": _ratio(cpu_s, calls),
        "burst_minstr": _ratio(minstr, calls),
        "cpu_io": _ratio(minstr, mb),
        "cpu_s_per_mb": _ratio(cpu_s, mb),
        "mem_cpu": _ratio(memory_bytes / MB * real_s, minstr),
        "instr_per_op": _ratio(minstr * MILLION, calls),
    }


def _ratio(one: float, other: float) -> float | None:
    return one / other if one and other else None


def _files(measures: Measures, roles: Roles) -> list[Told]:
    files, columns, found = measures.trace.files, measures.files(), []
    for number, role in roles.of.items():
        facts: Told = {"path": files.paths[number], "role": role, "is_guess": number in roles.guessed}
        facts |= {name: int(column[number]) for name, column in columns.items()}
        facts |= {
            "is_new": files.made[number],
            "is_deleted": files.gone[number],
            "operations": measures.by_file[number],
        }
        facts["ways"] = "r" * (facts.pop("read_uses") > 0) + "w" * (facts.pop("written_uses") > 0)
        found.append(facts)
    return sorted(found, key=lambda file: (-file["read_bytes"] - file["written_bytes"], -file["static_bytes"]))


def nodes(row: Told, mips: float) -> list[Told]:
    """How many nodes each server can feed, by discipline and by time of processor or real time; None: any number."""
    times, found = {"cpu": row["minstr"] / mips or row["cpu_s"], "real": row["real_s"]}, []
    for discipline, without in DISCIPLINES.items():
        mb = sum(amount["traffic"] for role, amount in row["roles"].items() if role not in without) / MB
        for base, seconds in times.items():
            fed = {name: speed * seconds / mb if mb else None for name, speed in SERVERS_MB_S.items()}
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
    edges = np.linspace(0, times.max(initial=1e-3), _BINS + 1)
    rates = {role: measures.timeline(roles.uses(measures, role), times, edges) / np.diff(edges) / MB for role in Role}
    return {"s": edges[:-1].tolist(), "mb_s": {role: rate.tolist() for role, rate in rates.items() if rate.any()}}


def _verdicts(totals: list[Told], scalability: list[Told], *, has_bytes: bool, guesses: int) -> list[str]:
    """What the figures mean, in sentences."""
    batch, said = totals[0]["roles"][Role.BATCH], []
    if shared := max(total["roles"][Role.SHARED]["files"] for total in totals):
        said.append(f"Not a batch-pipeline workload: pipelines read what others write ({count(shared, 'file')}).")
    elif len(totals) > 1:
        said.append(
            f"A batch-pipeline workload: {len(totals)} instances do not touch each other's files, and share "
            f"{count(batch['files'], 'file')} of batch data ({format_size(batch['static'])})."
        )
    else:
        said.append(
            "One instance cannot tell whether this is a batch-pipeline workload, and the roles of "
            f"{count(guesses, 'file')} that are only read are guesses; trace a second one with --again."
        )
    for what, key in (("real time", "real_s"), ("processor time", "cpu_s"), ("traffic", "volume")):
        values = [total[key]["traffic"] if key == "volume" else total[key] for total in totals]
        if len(values) > 1 and (mean := sum(values) / len(values)) > _LITTLE:
            said.append(f"Instances differ by {(max(values) - min(values)) / mean:.0%} in {what}.")
    if not has_bytes:
        return [*said, "Files were traced, not bytes: traffic and unique bytes are not known; use --detail bytes."]
    for row in (row for row in scalability if row["time"] == "real"):
        fed = row["nodes"]["local network"]
        judged = "data-intensive" if fed is not None and fed < _FEW_NODES else "not data-intensive"
        limit = (
            "any number of nodes" if fed is None else f"{math.floor(fed):,} nodes" if fed >= 1 else "less than one node"
        )
        said.append(f"{row['discipline'].capitalize()}: {judged}; a server of 12 MB/s feeds {limit} (real time).")
    return said
