"""What a Slurm site allows one user: read from the partition, the nodes, the controller and the accounts.

Rule 1: of several limits on the same thing the tightest counts.
Rule 2: accounts that cannot be read set no limit; Slurm will then say so itself when it refuses a job.
Rule 3: nodes that are down or drained may come back, so they count for what a run may ever ask for; how many can be
had now is told beside it.
"""

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from windrow.errors import UserError
from windrow.model.resources import meet
from windrow.model.site import kinds_of
from windrow.queues.port import Limits, QueueError
from windrow.queues.slurm.profile import SlurmProfile
from windrow.queues.slurm.text import NODE_FORMAT, SlurmNode, parse_duration, parse_nodes, parse_record

logger = logging.getLogger(__name__)

Ask = Callable[[Sequence[str]], str]
FEATURE = re.compile(r"[A-Za-z0-9_.:=-]+")
ASSOCIATION = ("User", "DefaultQOS", "MaxSubmitJobs", "GrpSubmitJobs", "MaxWall", "MaxTRES")
QOS = ("Name", "MaxSubmitJobsPerUser", "MaxSubmitJobsPerAccount", "GrpSubmitJobs", "MaxWall", "MaxTRES")


@dataclass(frozen=True, slots=True)
class SiteLimits:
    """The limits of one partition, its name, its cluster's, and whether the site keeps accounts that remember jobs."""

    limits: Limits
    partition: str
    has_accounts: bool
    cluster: str = ""


def read_limits(ask: Ask, profile: SlurmProfile, user: str) -> SiteLimits:
    """Read the site's limits for this user: three queries, and three of the accounts where there are any."""
    config = parse_record(ask(["scontrol", "show", "config"]))
    partition = _partition(ask, profile)
    name = partition["PartitionName"]
    nodes = suitable(read_nodes(ask, name, profile), profile)
    if not nodes:
        which = f" with the feature {profile.constraint}" if profile.constraint else ""
        raise UserError(f"partition {name} of this Slurm has no nodes{which}")
    usable = sum(node.is_open for node in nodes)
    has_accounts = config.get("AccountingStorageType", "").endswith("slurmdbd")
    rows = _account_rows(ask, profile, user, partition.get("QoS", "N/A"), config) if has_accounts else []
    counts = [value for row in rows for key, value in row.items() if "Submit" in key]
    max_jobs = min(map(int, filter(str.isdecimal, [*counts, config.get("MaxJobCount", "")])), default=None)
    widths = [match[1] for row in rows if (match := re.search(r"node=(\d+)", row["MaxTRES"]))]
    times = [*(row["MaxWall"] for row in rows), partition.get("MaxTime", "")]
    limits = Limits(
        nodes=len(nodes),
        shape=meet(node.shape for node in nodes),
        kinds=kinds_of(node.shape for node in nodes),
        max_nodes=min(map(int, filter(str.isdecimal, [*widths, partition.get("MaxNodes", "")])), default=None),
        max_walltime_s=min((s for s in map(parse_duration, times) if s is not None), default=None),
        max_jobs=max_jobs,
        max_array=max(1, min(_array_size(config), max_jobs or _array_size(config))),
        usable_nodes=usable,
        closed=_closed(name, partition.get("State", "UP"), len(nodes), usable),
    )
    return SiteLimits(limits, name, has_accounts, config.get("ClusterName", ""))


def _partition(ask: Ask, profile: SlurmProfile) -> dict[str, str]:
    records = [parse_record(line) for line in ask(["scontrol", "-o", "show", "partition"]).splitlines() if line.strip()]
    names = [record["PartitionName"] for record in records]
    for record in records:
        if record["PartitionName"] == profile.partition or (not profile.partition and record.get("Default") == "YES"):
            return record
    if profile.partition:
        raise UserError(f"this Slurm has no partition {profile.partition!r}; it has {', '.join(names)}")
    raise UserError(f"this Slurm has no default partition; set partition to one of {', '.join(names)}")


def read_nodes(ask: Ask, partition: str, profile: SlurmProfile) -> list[SlurmNode]:
    """All nodes of the partition."""
    out = ask(["sinfo", "--noheader", "-N", f"--partition={partition}", "-o", NODE_FORMAT])
    return parse_nodes(out, has_reservation=any(option.startswith("--reservation") for option in profile.extra))


def suitable(nodes: Iterable[SlurmNode], profile: SlurmProfile) -> list[SlurmNode]:
    """Those of the nodes that the profile's jobs may use; expressions of several features are left to Slurm."""
    wanted = profile.constraint
    return [node for node in nodes if not FEATURE.fullmatch(wanted) or wanted in node.features]


def _closed(partition: str, state: str, nodes: int, usable: int) -> str:
    """Why no job can start; empty where some can."""
    if state != "UP":
        word = {"INACTIVE": "inactive", "DRAIN": "being drained"}.get(state, "down")
        return f"partition {partition} is {word} (State={state})"
    if not usable:
        return f"all {nodes} nodes of partition {partition} are down, drained or reserved (see sinfo -R)"
    return ""


def _array_size(config: dict[str, str]) -> int:
    # Indices go from 0 to MaxArraySize - 1; 0 turns arrays off.
    parameters = re.search(r"max_array_tasks=(\d+)", config.get("SchedulerParameters", ""))
    sizes = [config.get("MaxArraySize", ""), parameters[1] if parameters else ""]
    return min(map(int, filter(str.isdecimal, sizes)), default=1)


def _account_rows(
    ask: Ask, profile: SlurmProfile, user: str, partition_qos: str, config: dict[str, str]
) -> list[dict[str, str]]:
    """What the accounts set limits by: the rows of account and user, and of their QOS."""
    show = ["sacctmgr", "--noheader", "--parsable2", "show"]
    try:
        account = profile.account or ask([*show, "user", user, "format=DefaultAccount"]).strip()
        where = ["where", f"account={account}", f"cluster={config.get('ClusterName', '')}"]
        associations = _table(ask([*show, "assoc", *where, f"format={','.join(ASSOCIATION)}"]), ASSOCIATION)
        rows = [row for row in associations if row["User"] in ("", user)]  # the account's own row has no user
        qos = {profile.qos or next((row["DefaultQOS"] for row in rows if row["User"] == user), ""), partition_qos}
        every = _table(ask([*show, "qos", f"format={','.join(QOS)}"]), QOS)
    except QueueError as error:
        logger.warning("limits of the accounts are unknown: %s", error)
        return []
    return [*rows, *(row for row in every if row["Name"] in qos)]


def allowed_accounts(ask: Ask, user: str, site: SiteLimits) -> str:
    """The accounts and QOS that the user may name, in words; empty where the accounts tell nothing."""
    if not site.has_accounts:
        return ""
    columns = ("Account", "QOS")
    where = ["where", f"user={user}", f"cluster={site.cluster}", f"format={','.join(columns)}"]
    try:
        rows = _table(ask(["sacctmgr", "--noheader", "--parsable2", "show", "assoc", *where]), columns)
    except QueueError:
        return ""
    each = [f"{row['Account']} (QOS {row['QOS'].replace(',', ', ') or 'none'})" for row in rows]
    return f"you may use the accounts {', '.join(each)}" if each else "you have no account on this cluster"


def _table(out: str, columns: Sequence[str]) -> list[dict[str, str]]:
    return [dict(zip(columns, line.split("|"), strict=True)) for line in out.splitlines() if line.strip()]
