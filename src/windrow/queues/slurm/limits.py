"""What a Slurm site allows one user: read from the partition, the nodes, the controller and the
accounts.

Rule 1: of several limits on the same thing the tightest counts, but for those on resources
(`tres`).
Rule 2: accounts that cannot be read set no limit; Slurm will then say so itself when it refuses a
job. Nor do they if Slurm does not enforce limits.
Rule 3: nodes that are down or drained may come back, so they count for what a run may ever ask for;
how many can be had now is told beside it.
Rule 4: a node that alone is more than a job may have is kept out of all jobs.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from windrow.errors import UserError
from windrow.model.parts import Sharing
from windrow.model.resources import meet
from windrow.model.site import kinds_of
from windrow.model.wording import count
from windrow.queues.port import Limits, QueueError
from windrow.queues.slurm.pool import pool
from windrow.queues.slurm.profile import SlurmProfile
from windrow.queues.slurm.sharing import sharing_of, why_whole
from windrow.queues.slurm.text import (
    NODE_FORMAT,
    SlurmNode,
    parse_duration,
    parse_nodes,
    parse_record,
)
from windrow.queues.slurm.tres import LIMITS, Bound, Rule, bounds_of, tightest

logger = logging.getLogger(__name__)

Ask = Callable[[Sequence[str]], str]
ASSOCIATION = (
    "User", "Partition", "ParentName", "DefaultQOS", "QOS", "MaxSubmitJobs", "GrpSubmitJobs",
    "MaxWall", "MaxTRES",
    "MaxTRESPerNode", "GrpTRES",
)  # fmt: skip
QOS = (
    "Name",
    "Flags",
    "MaxSubmitJobsPerUser",
    "MaxSubmitJobsPerAccount",
    "GrpSubmitJobs",
    "MaxWall",
    *LIMITS,
)
_SHOW = ("sacctmgr", "--noheader", "--parsable2", "show")


@dataclass(frozen=True, slots=True)
class SiteLimits:
    """The limits of one partition, its name, its cluster's, and whether the site keeps accounts
    that remember jobs.

    `pool`: the names of the nodes that jobs may have; `kept_out`: of those that Slurm must be told
    to exclude.
    """

    limits: Limits
    partition: str
    has_accounts: bool
    cluster: str = ""
    pool: frozenset[str] = frozenset()
    nodes: tuple[SlurmNode, ...] = ()
    """All of the partition, as they were when this was read."""
    kept_out: tuple[str, ...] = ()
    bounds: tuple[Bound, ...] = ()
    """What accounts allow jobs to have."""
    is_federated: bool = False
    """Whether listings show jobs of several clusters."""


def _without(
    limits: Limits, bounds: Sequence[Bound], able: Sequence[SlurmNode], nodes: Sequence[SlurmNode]
) -> Limits:
    """What is to be said of nodes that the bounds leave out."""
    if not nodes:
        return replace(limits, closed=_too_small(bounds, able), usable_nodes=0)
    if len(nodes) < len(able):
        return replace(limits, left_out=_left_out(bounds, able))
    return limits


def read_limits(ask: Ask, profile: SlurmProfile, user: str) -> SiteLimits:
    """Read the site's limits for this user: three queries, and of the accounts, if there are
    any, some more."""
    config = parse_record(ask(["scontrol", "show", "config"]))
    partition = _partition(ask, profile)
    name = partition["PartitionName"]
    every = read_nodes(ask, name, profile)
    able = pool(ask, every, profile)
    if not able:
        raise UserError(f"partition {name} of this Slurm has no nodes{_wanted(profile)}")
    has_accounts = config.get("AccountingStorageType", "").endswith("slurmdbd")
    is_enforced = "limits" in config.get("AccountingStorageEnforce", "limits")
    where = _Where(user, config.get("ClusterName", ""), name, partition.get("QoS", "N/A"))
    rules = _rules(ask, profile, where) if has_accounts and is_enforced else []
    bounds = bounds_of(
        rules, counts_memory="MEMORY" in config.get("SelectTypeParameters", "MEMORY").upper()
    )
    sharing = _sharing(config, partition, able, bounds, profile)
    nodes = [node for node in able if sharing is not None or _most(bounds, node) != 0]
    kept_out = {node.name for node in able} - {node.name for node in nodes}
    if profile.has_list:  # which sbatch would take for nodes that each job must have
        kept_out |= {node.name for node in every} - {node.name for node in able}
    limits = replace(
        _limits(config, partition, [rule.row for rule in rules], nodes or able), sharing=sharing
    )
    if sharing is None:
        limits = replace(limits, **_narrowed(bounds, nodes, partition))
    limits = _without(limits, bounds, able, nodes)
    names = frozenset(node.name for node in nodes)
    return SiteLimits(
        limits,
        name,
        has_accounts,
        where.cluster,
        names,
        tuple(every),
        tuple(sorted(kept_out)),
        tuple(bounds),
        "fed_display" in config.get("FederationParameters", ""),
    )


def _sharing(
    config: dict[str, str],
    partition: dict[str, str],
    nodes: Sequence[SlurmNode],
    bounds: Sequence[Bound],
    profile: SlurmProfile,
) -> Sharing | None:
    """How these nodes are shared; None if jobs are to have whole ones."""
    if profile.share == "nodes":
        return None
    if not (why := why_whole(config, partition)):
        return sharing_of(config, partition, nodes, bounds)
    if profile.share == "cores":
        raise UserError(
            f'share = "cores" is not possible here: jobs have whole nodes ({why}); leave it out'
        )
    return None


def _limits(
    config: dict[str, str],
    partition: dict[str, str],
    rows: Sequence[Mapping[str, str]],
    nodes: Sequence[SlurmNode],
) -> Limits:
    """Those on nodes, time and the number of jobs."""
    usable = sum(node.is_open for node in nodes)
    counts = [value for row in rows for key, value in row.items() if "Submit" in key]
    max_jobs = min(
        map(int, filter(str.isdecimal, [*counts, config.get("MaxJobCount", "")])), default=None
    )
    times = [*(row["MaxWall"] for row in rows), partition.get("MaxTime", "")]
    return Limits(
        nodes=len(nodes),
        shape=meet(node.shape for node in nodes),
        kinds=kinds_of(node.shape for node in nodes),
        max_walltime_s=min((s for s in map(parse_duration, times) if s is not None), default=None),
        max_jobs=max_jobs,
        max_array=max(1, min(_array_size(config), max_jobs or _array_size(config))),
        usable_nodes=usable,
        closed=_closed(
            partition["PartitionName"], partition.get("State", "UP"), len(nodes), usable
        ),
    )


def _wanted(profile: SlurmProfile) -> str:
    """What the profile says of nodes, for an error."""
    lists = (f"--{name}={profile.value(name)}" for name in ("reservation", "nodelist", "exclude"))
    told = [one for one in lists if one[-1] != "="]
    if profile.constraint:
        told.insert(0, f"the feature {profile.constraint}")
    if told:
        return f" with {', '.join(told)}"
    return ""


def _most(bounds: Sequence[Bound], node: SlurmNode) -> int | None:
    found = tightest(bounds, node.shape)
    if found is None:
        return None
    return found[0]


def _narrowed(
    bounds: Sequence[Bound], nodes: Sequence[SlurmNode], partition: dict[str, str]
) -> dict[str, Any]:
    """The most nodes of a job, whichever of these it gets, and what says so: as fields of
    limits."""
    found = list[tuple[int, str]]()
    for kind in kinds_of(node.shape for node in nodes):
        if (told := tightest(bounds, kind.shape)) is not None:
            found.append((told[0], f"{told[1].name}, and jobs take whole nodes"))
    if (most := partition.get("MaxNodes", "")).isdecimal():
        found.append((int(most), f"MaxNodes of partition {partition['PartitionName']}"))
    if not found:
        return {}
    width, why = min(found)
    return {"max_nodes": width, "narrow": f"a job has at most {count(width, 'node')} here: {why}"}


def _too_small(bounds: Sequence[Bound], nodes: Sequence[SlurmNode]) -> str:
    """Why no job can ever start if each node is more than one may have."""
    least = min(nodes, key=lambda node: node.shape.cores).shape
    found = tightest(bounds, least)
    assert found is not None, "some bound rules out each node"
    why = (
        f"{found[1].name} allows less than one whole node, which has {least}, and jobs take "
        "whole nodes"
    )
    return f"{why} (another QOS or account may allow more)"


def _left_out(bounds: Sequence[Bound], nodes: Sequence[SlurmNode]) -> str:
    """Which of the nodes are more than a job may have, and why."""
    found = list[str]()
    for kind in kinds_of(node.shape for node in nodes if _most(bounds, node) == 0):
        told = tightest(bounds, kind.shape)
        assert told is not None, "some bound rules it out"
        found.append(f"{told[1].name} leaves out {count(kind.count, 'node')} of {kind.shape}")
    return f"{'; '.join(found)}: jobs take whole nodes"


def _partition(ask: Ask, profile: SlurmProfile) -> dict[str, str]:
    records = [
        parse_record(line)
        for line in ask(["scontrol", "-o", "show", "partition"]).splitlines()
        if line.strip()
    ]
    names = [record["PartitionName"] for record in records]
    for record in records:
        if record["PartitionName"] == profile.partition or (
            not profile.partition and record.get("Default") == "YES"
        ):
            return record
    if profile.partition:
        raise UserError(
            f"this Slurm has no partition {profile.partition!r}; it has {', '.join(names)}"
        )
    raise UserError(
        f"this Slurm has no default partition; set partition to one of {', '.join(names)}"
    )


def read_nodes(ask: Ask, partition: str, profile: SlurmProfile) -> list[SlurmNode]:
    """All nodes of the partition."""
    out = ask(["sinfo", "--noheader", "-N", f"--partition={partition}", "-o", NODE_FORMAT])
    return parse_nodes(
        out, has_reservation=any(option.startswith("--reservation") for option in profile.extra)
    )


def _closed(partition: str, state: str, nodes: int, usable: int) -> str:
    """Why no job can start; empty if some can."""
    if state != "UP":
        word = {"INACTIVE": "inactive", "DRAIN": "being drained"}.get(state, "down")
        return f"partition {partition} is {word} (State={state})"
    if not usable:
        return (
            f"all {nodes} nodes of partition {partition} are down, drained or reserved (see "
            "sinfo -R)"
        )
    return ""


def _array_size(config: dict[str, str]) -> int:
    # Indices go from 0 to MaxArraySize - 1; 0 turns arrays off.
    parameters = re.search(r"max_array_tasks=(\d+)", config.get("SchedulerParameters", ""))
    sizes = [config.get("MaxArraySize", ""), parameters[1] if parameters else ""]
    return min(map(int, filter(str.isdecimal, sizes)), default=1)


@dataclass(frozen=True, slots=True)
class _Where:
    """Whose jobs the accounts limit, and where."""

    user: str
    cluster: str
    partition: str
    partition_qos: str


def _rules(ask: Ask, profile: SlurmProfile, where: _Where) -> list[Rule]:
    """What the accounts set limits by, in the order in which Slurm looks at them: QOS, then
    associations."""
    try:
        account = (
            profile.account or ask([*_SHOW, "user", where.user, "format=DefaultAccount"]).strip()
        )
        associations, job_qos = _associations(ask, account, where)
        every = {
            row["Name"]: row for row in _table(ask([*_SHOW, "qos", f"format={','.join(QOS)}"]), QOS)
        }
    except QueueError as error:
        logger.warning("limits of the accounts are unknown: %s", error)
        return []
    names = _in_order(where.partition_qos, profile.qos or job_qos, every)
    return [
        Rule(f"QOS {name}", True, every[name]) for name in dict.fromkeys(names) if name in every
    ] + associations


def _in_order(of_partition: str, of_job: str, every: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The names of the partition's QOS and of the job's, the one that counts first."""
    if "OverPartQOS" in every.get(of_job, {}).get("Flags", ""):
        return [of_job, of_partition]
    return [of_partition, of_job]


def _associations(ask: Ask, account: str, where: _Where) -> tuple[list[Rule], str]:
    """The user's association and those of the accounts above it, and the QOS of jobs that name
    none."""
    every = _show_associations(ask, f"account={account}", where)
    own = [
        row
        for row in every
        if row["User"] == where.user and row["Partition"] in ("", where.partition)
    ]
    own.sort(key=lambda row: row["Partition"], reverse=True)  # that of the partition first
    found = [Rule(f"user {where.user} in account {account}", False, row) for row in own[:1]]
    seen = {account}
    above = [row for row in every if not row["User"]][:1]
    while above:  # the account's own row has no user
        found.append(Rule(f"account {account}", False, above[0]))
        account = above[0]["ParentName"]
        is_new = account not in ("", *seen)
        seen.add(account)
        if is_new:
            above = _show_associations(ask, f"account={account} user=", where)[:1]
        else:
            above = []
    if own:
        first = own[0]
    else:
        first = {"DefaultQOS": "", "QOS": ""}
    if "," not in first["QOS"]:
        only = first["QOS"]
    else:
        only = ""
    return found, first["DefaultQOS"] or only or "normal"


def _show_associations(ask: Ask, which: str, where: _Where) -> list[dict[str, str]]:
    argv = [
        *_SHOW,
        "assoc",
        "where",
        *which.split(),
        f"cluster={where.cluster}",
        f"format={','.join(ASSOCIATION)}",
    ]
    return _table(ask(argv), ASSOCIATION)


def allowed_accounts(ask: Ask, user: str, site: SiteLimits) -> str:
    """The accounts and QOS that the user may name, in words; empty if the accounts tell
    nothing."""
    if not site.has_accounts:
        return ""
    columns = ("Account", "QOS")
    where = ["where", f"user={user}", f"cluster={site.cluster}", f"format={','.join(columns)}"]
    try:
        rows = _table(ask([*_SHOW, "assoc", *where]), columns)
    except QueueError:
        return ""
    each = [f"{row['Account']} (QOS {row['QOS'].replace(',', ', ') or 'none'})" for row in rows]
    if each:
        return f"you may use the accounts {', '.join(each)}"
    return "you have no account on this cluster"


def _table(out: str, columns: Sequence[str]) -> list[dict[str, str]]:
    return [
        dict(zip(columns, line.split("|"), strict=True))
        for line in out.splitlines()
        if line.strip()
    ]
