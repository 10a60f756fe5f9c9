"""What Slurm's commands print, read into values: tables and pure functions. Checked with
22.05 and 24.11.

Formats are explicit lists of fields with a delimiter, because Slurm's JSON changes its schema from
release to release. The job's name is always the last field, since it alone may hold the delimiter.
Times are asked for as seconds since the epoch (SLURM_TIME_FORMAT=%s), so no time zone and no change
of the clocks gets in between.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from windrow.model.bounds import COUNT_MAX
from windrow.model.cause import Cause
from windrow.model.resources import (
    GPUS,
    Counts,
    NodeShape,
    gpu_type,
    gpus_of_type,
    is_name,
)
from windrow.queues.batch import Wording
from windrow.queues.port import JobState, JobStatus, Life, OthersJob, PastJob
from windrow.queues.slurm.tres import parse_tres

_WORDS = {
    JobState.WAITING: "PENDING REQUEUED REQUEUE_FED REQUEUE_HOLD RESV_DEL_HOLD SPECIAL_EXIT",
    # A job that is COMPLETING still holds nodes; how it ended is told when it lets go of them.
    JobState.RUNNING: "CONFIGURING RUNNING SUSPENDED STOPPED SIGNALING RESIZING STAGE_OUT "
    "COMPLETING",
    JobState.ENDED: "COMPLETED FAILED",
    JobState.TIMED_OUT: "TIMEOUT",
    JobState.CANCELLED: "CANCELLED",
    JobState.NODE_FAILED: "NODE_FAIL BOOT_FAIL LAUNCH_FAILED RECONFIG_FAIL",
    JobState.OUT_OF_MEMORY: "OUT_OF_MEMORY",
    JobState.PREEMPTED: "PREEMPTED",
    JobState.KILLED: "DEADLINE REVOKED",
}
STATES = {word: state for state, words in _WORDS.items() for word in words.split()}

# Widths are ample, not exact: squeue pads a field to its width and cuts what is longer.
STATUS_FORMAT = (
    "JobArrayID:64|,State:24|,SubmitTime:24|,StartTime:24|,EndTime:24|,exit_code:24|,Reason:256|,NodeList:4096|,"
    "Name:1024"
)
SNAPSHOT_FORMAT = "JobArrayID:64|,State:24|,StartTime:24|,TimeLimit:24|,NumNodes:16|,PriorityLong:24|,Reason:256|,UserName:256"  # noqa: E501
# Of partitions whose jobs share nodes: what a job has, or asks for, whether alone, and where.
SHARED_FORMAT = SNAPSHOT_FORMAT.replace(
    "UserName", "tres-alloc:256|,OverSubscribe:16|,NodeList:4096|,UserName"
)
SACCT_FORMAT = "JobID,State,Submit,Start,End,ExitCode,Reason,NodeList,JobName"
PAST_FORMAT = "JobID,State,Submit,Start,End,NNodes,TimelimitRaw,NodeList,User,JobName"
_LOST = {JobState.NODE_FAILED: Cause.NODE_FAILED, JobState.PREEMPTED: Cause.PREEMPTED}
PAST_SHARED_FORMAT = PAST_FORMAT.replace("JobName", "AllocTRES,ReqTRES,JobName")
LIFE_FORMAT = "JobID,State,Start,End,NNodes,NodeList"
NODE_FORMAT = "%N|%T|%a|%c|%m|%d|%G|%f"

# Such jobs wait for something other than nodes, and it is unknown how long: no forecast can count
# on them.
NOT_IN_LINE = ("JobHeld", "Dependency", "BeginTime", "DependencyNeverSatisfied")
UNUSABLE = ("down", "drained", "fail", "unknown", "error", "inval", "future", "blocked", "perfctrs")
BUSY = ("allocated", "mixed", "completing", "draining")
RESERVED = ("maint", "reserved")  # idle, and kept from all jobs that do not name the reservation
NO_HOSTS = ("", "None assigned", "(null)", "N/A")
_PARTS_OF_GPUS = ("shard", "mps")
OWN_NAME = "windrow-"  # what the tags of all runs begin with
FOREVER_S = 365 * 86400  # what counts as the limit of a job that has none

# The words of sbatch after which unknown whether the job exists, and those after which it does not
# but may later.
UNKNOWN_OUTCOME = re.compile(
    r"timed out|zero bytes were transmitted|message receive failure|unexpected message|insane message length",  # noqa: E501
    re.I,
)
TRANSIENT = re.compile(
    r"unable to contact slurm controller|connect failure|connection refused|temporarily unable|temporarily unavailable"  # noqa: E501
    r"|standby mode|authentication|munge|configuration source|rate limit"
    # MaxSubmitJobs and its kin: room comes when a job ends
    r"|submitjob|required partition not available",
    re.I,
)
OVER_ALREADY = re.compile(
    r"invalid job id|already completing|already completed|invalid job array", re.I
)
WORDING = Wording("Slurm", UNKNOWN_OUTCOME, TRANSIENT, OVER_ALREADY)


@dataclass(frozen=True, slots=True)
class Row:
    """A job in a listing: what the queue says of it, and the name that it carries."""

    status: JobStatus
    name: str


@dataclass(frozen=True, slots=True)
class SlurmNode:
    """A node as sinfo lists it. `is_usable`: jobs run there, or may. `is_open`: new jobs may as
    well. `is_busy`: jobs run there."""

    name: str
    is_usable: bool
    is_open: bool
    shape: NodeShape
    features: frozenset[str]
    is_busy: bool = False


def submitted_id(out: str) -> str | None:
    """The job's number in what `sbatch --parsable` prints; with several clusters that is
    JOB;CLUSTER."""
    number = out.strip().partition(";")[0]
    if number.isdecimal():
        return number
    return None


def without_headings(out: str) -> str:
    """What a command printed that was asked for a cluster, without the lines that name the
    cluster."""
    return "".join(
        line for line in out.splitlines(keepends=True) if not line.startswith("CLUSTER: ")
    )


def parse_time(text: str) -> float | None:
    """Seconds since the epoch from Slurm's time, or None if it says that there is none."""
    if text.isdecimal():
        if int(text) > 0:
            return float(text)
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:  # N/A, Unknown, None: Slurm has many words for it
        return None


def parse_duration(text: str) -> int | None:
    """Seconds from `[days-][hours:]minutes:seconds`, or from minutes alone; None if there is no
    limit."""
    days, _, clock = text.rpartition("-")
    parts = clock.split(":")
    if not all(part.isdecimal() for part in parts) or (days and not days.isdecimal()):
        return None  # UNLIMITED, NOT_SET, Partition_Limit, N/A
    numbers = [int(part) for part in parts]
    if days:  # days-hours[:minutes[:seconds]]
        hours, minutes, seconds = (*numbers, 0, 0)[:3]
    else:
        hours, minutes, seconds = {1: (0, *numbers, 0), 2: (0, *numbers), 3: tuple(numbers)}[
            len(numbers)
        ]
    return int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds


def format_duration(seconds: int) -> str:
    """A time limit as sbatch reads it. Slurm itself rounds it up to whole minutes."""
    minutes, s = divmod(seconds, 60)
    hours, m = divmod(minutes, 60)
    days, h = divmod(hours, 24)
    return f"{days}-{h:02}:{m:02}:{s:02}"


def parse_count(text: str) -> int:
    """A count of nodes; squeue writes 2048 as 2K, and a wish for 2 to 4 nodes as 2-4."""
    number = text.partition("-")[0]
    factor = {"K": 1024, "M": 1024**2}.get(number[-1:].upper(), 1)
    return round(float(number.rstrip("KkMm+")) * factor)


def parse_status(out: str) -> list[Row]:
    """The rows of `squeue -O STATUS_FORMAT`."""
    rows = []
    for id_, state, *times, exit_status, reason, hosts, name in split_rows(out, 9):
        rows.append(Row(_status(id_, state, times, _exit(exit_status), reason, hosts), name))
    return rows


def _exit(text: str) -> tuple[int, int]:
    """The exit code and the signal. Slurm 24.11 writes `CODE:SIGNAL`; 22.05 a status as of wait(2):
    the signal in the low byte, the code above it."""
    code, colon, signal = text.partition(":")
    if colon:
        return int(code or 0), int(signal or 0)
    if not text.isdecimal():
        return 0, 0
    return int(text) >> 8, int(text) & 0x7F


def parse_sacct(out: str) -> list[Row]:
    """The rows of `sacct -XnP --format SACCT_FORMAT` that are over.

    Others are left out: what the controller does not know and accounting calls running is a late or
    lost record.
    """
    rows = []
    for id_, state, *times, exit_, reason, hosts, name in split_rows(out, 9):
        rows.append(Row(_status(id_, state, times, _exit(exit_), reason, hosts), name))
    return [row for row in rows if row.status.state.is_over]


def _status(
    id_: str, words: str, times: list[str], exit_: tuple[int, int], reason: str, hosts: str
) -> JobStatus:
    # sacct says `CANCELLED by 1000`. A state that no table knows may be a new one: it is not called
    # over.
    state = STATES.get(words.split(maxsplit=1)[0].rstrip("+"), JobState.RUNNING)
    submitted, start, end = map(parse_time, times)
    waits = state is JobState.WAITING
    code, sign = exit_
    if sign:
        code = 128 + sign
    why = "" if reason == "None" else reason
    return JobStatus(
        id=id_,
        state=state,
        submitted_s=submitted,
        # Of a waiting job `start` is an estimate; one that was cancelled before it had nodes has
        # its end there.
        started_s=None if waits or hosts in NO_HOSTS else start,
        ended_s=end if state.is_over else None,
        exit_code=code if state.is_over else None,
        reason=why if not state.is_over else f"{words} {why}".strip(),
        expected_start_s=start if waits else None,
        hosts=() if hosts in NO_HOSTS else parse_hosts(hosts),
    )


def past_argv(
    partition: str, since_s: float, now_s: float, columns: str = PAST_FORMAT
) -> list[str]:
    """The question: all jobs that waited, ran or ended since then. sacct takes no seconds of the
    epoch."""
    ago = max(1, round(now_s - since_s))
    return [
        *(
            "sacct",
            "--allusers",
            "--allocations",
            "--noheader",
            "--parsable2",
            f"--partition={partition}",
        ),
        *(f"--starttime=now-{ago}seconds", f"--format={columns}"),
    ]


def parse_past(out: str, default_s: int, me: str) -> list[PastJob]:
    """Everybody's past jobs, in sacct's order. `default_s` is the limit of jobs that have none of
    their own.

    Jobs of our own runs are left out: they are known by their names, and are submitted by no other
    program. So is a job that was cancelled before it had nodes, and an array that waits
    (`12_[0-9]`): its members have ids of their own in squeue, and here as soon as they start.
    """
    rows = (_past_job(fields, default_s, me) for fields in split_rows(out, 10))
    return [job for job in rows if job is not None]


def parse_shared_past(out: str, default_s: int, me: str) -> list[PastJob]:
    """The same of `sacct -XnP --format PAST_SHARED_FORMAT`, with what jobs had, or asked for."""
    found = []
    for *fields, had, asked, name in split_rows(out, 12):
        if (job := _past_job([*fields, name], default_s, me)) is not None:
            cores, memory_bytes = amounts(had or asked)
            found.append(replace(job, cores=cores, memory_bytes=memory_bytes))
    return found


def amounts(tres: str) -> tuple[int, int]:
    """The cores and the memory in bytes of `cpu=4,mem=2000M,node=1`."""
    found = {name: amount for name, amount, _ in parse_tres(tres)}
    return found.get("cpu", 0), found.get("mem", 0)


def _past_job(fields: list[str], default_s: int, me: str) -> PastJob | None:
    id_, words, submit, start, end, nodes, minutes, hosts, user, name = fields
    submitted = parse_time(submit)
    if submitted is None or "[" in id_ or (user == me and name.startswith(OWN_NAME)):
        return None
    is_over = (
        state := STATES.get(words.partition(" ")[0].rstrip("+"))
    ) is not None and state.is_over
    has_nodes = hosts not in NO_HOSTS
    if (is_over and not has_nodes) or not nodes[:1].isdecimal() or parse_count(nodes) < 1:
        return None
    if minutes.isdecimal():
        requested_s = 60 * int(minutes)
    elif minutes == "UNLIMITED":
        requested_s = FOREVER_S
    else:
        requested_s = default_s
    return PastJob(
        id=id_,
        user=user,
        nodes=parse_count(nodes),
        requested_s=max(1, requested_s),
        submitted_s=submitted,
        started_s=parse_time(start) if has_nodes else None,
        ended_s=parse_time(end) if is_over else None,
    )


def parse_lives(out: str, since_s: float, now_s: float) -> list[Life]:
    """The rows of `sacct -D --format LIFE_FORMAT` that had nodes, from `since_s` on; what runs has
    lived until now."""
    found = []
    for id_, words, start, end, nodes, hosts in split_rows(out, 6):
        started_s = parse_time(start)
        state = STATES.get(words.partition(" ")[0].rstrip("+"))
        if (
            started_s is None
            or hosts in NO_HOSTS
            or not nodes[:1].isdecimal()
            or state is JobState.WAITING
        ):
            continue
        cause = _LOST.get(state or JobState.ENDED)
        span = (max(since_s, started_s), parse_time(end) or now_s)
        found.append(Life(id_, parse_count(nodes), *span, cause, parse_hosts(hosts)))
    return found


def parse_hosts(text: str) -> tuple[str, ...]:
    """The nodes of a list such as `n[01-03,7],m2`, in order. A list that was cut short tells
    none."""
    found: list[str] = []
    for prefix, ranges, rest in re.findall(r"([^,\[\]]+)(?:\[([^\]]*)\])?([^,]*)", text):
        if rest or text.count("[") != text.count(
            "]"
        ):  # several brackets in one name: rare, and not needed here
            return ()
        for part in ranges.split(",") if ranges else [""]:
            first, _, last = part.partition("-")
            if not last:
                found.append(prefix + first)
            else:
                found += [
                    f"{prefix}{number:0{len(first)}}" for number in range(int(first), int(last) + 1)
                ]
    return tuple(found)


def parse_snapshot(out: str, default_s: int) -> list[OthersJob]:
    """The rows of `squeue -O SNAPSHOT_FORMAT`: running jobs, then waiting ones as Slurm takes
    them."""
    return _in_line(_listed_job(fields, default_s) for fields in split_rows(out, 8))


def parse_shared(out: str, default_s: int) -> list[OthersJob]:
    """The rows of `squeue -O SHARED_FORMAT`."""
    found = []
    for *fields, tres, shares, hosts, user in split_rows(out, 11):
        job = _listed_job([*fields, user], default_s)
        if job is not None:
            cores, memory_bytes = amounts(tres)
            known = () if hosts in NO_HOSTS else parse_hosts(hosts)
            is_alone = shares == "NO"
            found.append(
                replace(job, cores=cores, memory_bytes=memory_bytes, is_alone=is_alone, hosts=known)
            )
    return _in_line(found)


def _in_line(jobs: Iterable[OthersJob | None]) -> list[OthersJob]:
    there = [job for job in jobs if job is not None]
    waiting = sorted(
        (job for job in there if not job.is_running),
        key=lambda job: (-job.priority, id_order(job.id)),
    )
    return [job for job in there if job.is_running] + waiting


def _listed_job(fields: Sequence[str], default_s: int) -> OthersJob | None:
    """A job of a listing; None if it waits for something other than nodes."""
    id_, state, start, limit, nodes, priority, reason, user = fields
    waits = STATES.get(state, JobState.RUNNING) is JobState.WAITING
    if waits and (reason.startswith(NOT_IN_LINE) or priority == "0"):
        return None
    seconds = FOREVER_S if limit == "UNLIMITED" else parse_duration(limit)
    if seconds is None:
        requested_s = default_s
    else:
        requested_s = seconds
    if waits:
        started_s = None
    else:
        started_s = parse_time(start)
    return OthersJob(
        id_, parse_count(nodes), requested_s, not waits, started_s, float(priority), user
    )


def parse_nodes(out: str, *, has_reservation: bool = False) -> list[SlurmNode]:
    """The rows of `sinfo -N -o NODE_FORMAT`. `*` marks a node that does not answer, `$` one that
    maintenance awaits.

    A partition that is not up starts no job, whatever its nodes are like. Reserved nodes are open
    to those who have a reservation.
    """
    nodes = []
    rows = list(split_rows(out, 8))
    has_disk = any(row[5].rstrip("+") != "0" for row in rows)  # else the site does not say
    for name, state, availability, cores, memory, disk, gres, features in rows:
        plain = state.rstrip("*~#!%$@^-+").lower()
        is_kept = not has_reservation and plain.startswith(RESERVED)
        usable = "*" not in state and not plain.startswith(UNUSABLE) and not is_kept
        leaves = plain.startswith("draining") or ("$" in state and not has_reservation)
        is_open = usable and not leaves and availability == "up"
        kinds = frozenset(features.split(","))
        sizes = [int(size.rstrip("+")) * 1024**2 for size in (memory, disk)]
        shape = NodeShape(
            int(cores.rstrip("+")), sizes[0], sizes[1] if has_disk else None, parse_gres(gres)
        )
        nodes.append(SlurmNode(name, usable, is_open, shape, kinds, plain.startswith(BUSY)))
    return nodes


def parse_closures(
    out: str, names: Collection[str], now_s: float
) -> tuple[tuple[float, float, int], ...]:
    """What `scontrol -o show reservation` announces as maintenance of some of these nodes, and has
    not started."""
    found = []
    for record in map(parse_record, out.splitlines()):
        start_s, end_s = (
            parse_time(record.get(key, "")) or 0.0 for key in ("StartTime", "EndTime")
        )
        closed = len({*names}.intersection(parse_hosts(record.get("Nodes", ""))))
        if "MAINT" in record.get("Flags", "").split(",") and now_s < start_s < end_s and closed:
            found.append((start_s, end_s, closed))
    return tuple(sorted(found))


def parse_gres(text: str) -> Counts:
    """What `gpu:a100:2(S:0-1),shard:8,scratch:lustre:no_consume:1T` counts; types are added up,
    and those of GPUs are counted each besides.

    Slurm's word for a GPU is `gpu`. What is not consumed is not counted, and neither are shares of
    GPUs.
    """
    found = Counter[str]()
    for one in re.sub(r"\([^)]*\)", "", text).split(","):
        name, *more = one.split(":")
        number = re.fullmatch(r"(\d+)([KMGTP]?)", more[-1] if more else "")
        if number and "no_consume" not in more and name not in _PARTS_OF_GPUS:
            amount = int(number[1]) * 1024 ** " KMGTP".index(number[2] or " ")
            if name != "gpu":
                found[name] += amount
                continue
            found[GPUS] += amount
            if len(more) > 1:
                found[gpus_of_type(more[0])] += amount
    return tuple(
        sorted(
            (name, min(count, COUNT_MAX))
            for name, count in found.items()
            if count and (is_name(name) or gpu_type(name))
        )
    )


def gres_option(counts: Counts, extra: Sequence[str]) -> list[str]:
    """The option that requests these amounts, and what the profile's own requests besides; the last
    one counts. GPUs are requested by type, or without if no type is asked for."""
    has_types = any(gpu_type(name) for name, _ in counts)
    own = {_gres(name): str(count) for name, count in counts if not (has_types and name == GPUS)}
    kinds = {name.split(":")[0] for name in own}
    given = [
        one for option in extra if option.startswith("--gres=") for one in option[7:].split(",")
    ]
    words = [one for one in given if one.split(":")[0] not in kinds] + [
        ":".join(pair) for pair in own.items()
    ]
    if own:
        return [f"--gres={','.join(words)}"]
    return []


def _gres(name: str) -> str:
    """Slurm's word for what is counted by this name."""
    if name == GPUS:
        return "gpu"
    if kind := gpu_type(name):
        return f"gpu:{kind}"
    return name


def parse_record(out: str) -> dict[str, str]:
    """`Key=value` pairs of `scontrol -o show partition`, or `Key = value` lines of `scontrol show
    config`."""
    if " = " in out:
        lines = (line.partition(" = ") for line in out.splitlines() if " = " in line)
        return {key.strip(): value.strip() for key, _, value in lines}
    return dict(pair.split("=", 1) for pair in out.split() if "=" in pair)


def parse_probe(err: str) -> float | None:
    """The start time in the answer of `sbatch --test-only`."""
    match = re.search(r"to start at (\S+)", err)
    if match:
        return parse_time(match[1])
    return None


def array_index(id_: str) -> int | None:
    """The index of an array's member; None for any other job."""
    index = id_.partition("_")[2]
    if index.isdecimal():
        return int(index)
    return None


def id_order(id_: str) -> tuple[int, int]:
    """A key that sorts ids by age."""
    base, _, index = id_.partition("_")
    digits = re.match(r"\d+", base)
    return (int(digits[0]) if digits else 0, int(index) if index.isdecimal() else -1)


def split_rows(out: str, count: int) -> Iterator[list[str]]:
    """The fields of each line that has this number of them; what is not a row of the table is
    passed over."""
    for line in out.splitlines():
        fields = [field.strip() for field in line.split("|", count - 1)]
        if len(fields) == count:
            yield fields
