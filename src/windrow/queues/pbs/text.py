"""What the commands of PBS Pro and OpenPBS print, read into values: tables and pure functions.

Written from public documentation of PBS 19 to 2025; it has not met a live PBS yet. PBS says less
than Slurm of how a job ended, so it is told from the exit status, the substate and the time that
was used.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime

from windrow.model.nodes import Need
from windrow.model.resources import GPUS, NodeShape, is_name
from windrow.queues.port import JobState, JobStatus, OthersJob, QueueError

WAITING = "QHWTM"  # queued, held, waiting for its time, in transit, moved to another server
RUNNING = "RESUB"  # running, exiting, suspended twice over, an array that has started
IN_LINE = "QR"
TERMINATED = 91  # the substate of a job that was deleted
WALLTIME_EXCEEDED = -29
# What the batch system did not let run on: too much memory, processor time or too many processors.
KILLED = range(-28, -23)
_NOT_COUNTED = ("ncpus", "mem", "vmem")
SIGNAL = 256  # an exit status above it is a signal
FOREVER_S = 365 * 86400

TRANSIENT = re.compile(
    r"cannot connect|connection refused|no route to host|would exceed|maximum number of jobs|shutting down"  # noqa: E501
    r"|15010|queue is not enabled|resource temporarily",
    re.I,
)
UNKNOWN_OUTCOME = re.compile(
    r"timed out|end of file|communication failure|broken pipe|connection reset", re.I
)
OVER_ALREADY = re.compile(r"unknown job|has finished|invalid state", re.I)

Record = Mapping[str, object]


def parse_json(out: str, section: str) -> dict[str, Record]:
    """One section of `-F json` output: `Jobs`, `Queue`, `Server` or `nodes`; empty if there is
    none."""
    try:
        if out.strip():
            whole = json.loads(out, strict=False)
        else:
            whole = {}
    except ValueError as error:
        # Known of PBS: it does not escape everything that users put into a job's environment.
        raise QueueError(f"PBS output is not valid JSON ({error})") from error
    return dict(whole.get(section, {}))


def parse_time(value: object) -> float | None:
    """Seconds since the epoch from a number or from `Tue Oct  4 21:23:20 2022`, which is local
    time."""
    if isinstance(value, int | float):
        return float(value)
    try:
        return datetime.strptime(str(value), "%a %b %d %H:%M:%S %Y").timestamp()
    except ValueError:
        return None


def parse_duration(value: object) -> int | None:
    """Seconds from `[[hours:]minutes:]seconds`."""
    parts = str(value).split(":")
    if not all(part.isdecimal() for part in parts):
        return None
    seconds = 0
    for part in parts:
        seconds = 60 * seconds + int(part)
    return seconds


def format_duration(seconds: int) -> str:
    """A walltime as qsub reads it."""
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def parse_bytes(value: object) -> int | None:
    """Bytes from `196607mb` or `132gb`."""
    match = re.fullmatch(r"(\d+)([kmgt]?)b?", str(value).lower())
    if match is None:
        return None
    scale: int = 1024 ** " kmgt".index(match[2] or " ")
    return int(match[1]) * scale


def parse_shape(resources: Record) -> NodeShape:
    """What `resources_available` of a node says. Of its own resources, whole numbers are counts."""
    counts = {
        GPUS if name == "ngpus" else name: int(str(n))
        for name, n in resources.items()
        if str(n).isdecimal()
    }
    named = tuple(
        sorted(
            (name, n)
            for name, n in counts.items()
            if n and name not in _NOT_COUNTED and is_name(name)
        )
    )
    return NodeShape(
        int(str(resources.get("ncpus", 1))), parse_bytes(resources.get("mem")), counts=named
    )


def chunk(cores: int, per_node: Need) -> str:
    """What a job requests of each node."""
    if per_node.memory_bytes:
        memory = [f"mem={per_node.memory_bytes // 1024}kb"]
    else:
        memory = []
    counts = [f"{'ngpus' if name == GPUS else name}={n}" for name, n in per_node.counts]
    return ":".join([f"ncpus={max(cores, per_node.cores)}", *memory, *counts])


def parse_status(id_: str, job: Record) -> JobStatus:
    """What one record of `qstat -x -f -F json` says."""
    state = _state(job)
    code = _exit_status(job)
    if code is not None and code > SIGNAL:
        code = 128 + code - SIGNAL
    waits = state is JobState.WAITING
    ended = parse_time(job.get("obittime", job.get("mtime")))
    return JobStatus(
        id=id_,
        state=state,
        submitted_s=parse_time(job.get("ctime")),
        started_s=None if waits else parse_time(job.get("stime")),
        ended_s=ended if state.is_over else None,
        exit_code=code if state.is_over and code is not None and code >= 0 else None,
        reason=str(job.get("comment", "")),
        expected_start_s=parse_time(table(job, "estimated").get("start_time")) if waits else None,
    )


def _state(job: Record) -> JobState:
    letter = str(job.get("job_state", ""))
    if letter not in ("F", "X"):
        if letter in WAITING:
            return JobState.WAITING
        return JobState.RUNNING
    status = _exit_status(job)
    if _ran_out_of_time(job, status):
        return JobState.TIMED_OUT
    if job.get("substate") == TERMINATED or (status is None and "stime" not in job):
        return JobState.CANCELLED
    if status is not None and status in KILLED:
        return JobState.KILLED
    if status is not None and status < 0:
        return JobState.NODE_FAILED
    return JobState.ENDED


def _ran_out_of_time(job: Record, status: int | None) -> bool:
    if status == WALLTIME_EXCEEDED:
        return True
    used_s = parse_duration(table(job, "resources_used").get("walltime"))
    asked_s = parse_duration(table(job, "Resource_List").get("walltime"))
    by_signal = status is not None and status > SIGNAL  # what older versions say of it
    return by_signal and used_s is not None and asked_s is not None and used_s >= asked_s


def _exit_status(job: Record) -> int | None:
    value = job.get("Exit_status")
    if isinstance(value, int):
        return value
    return None


def parse_others(id_: str, job: Record) -> OthersJob | None:
    """A job of anyone that runs or stands in line; None for all others, and for an array as a
    whole."""
    letter = str(job.get("job_state", ""))
    if id_.partition(".")[0].endswith("[]") or (letter not in RUNNING and letter not in IN_LINE):
        return None
    asked = table(job, "Resource_List")
    runs = letter in RUNNING
    return OthersJob(
        id=id_,
        nodes=int(str(asked.get("nodect", 1))),
        requested_s=parse_duration(asked.get("walltime")) or FOREVER_S,
        is_running=runs,
        started_s=parse_time(job.get("stime")) if runs else None,
        priority=float(str(job.get("Priority", 0))),
        user=str(job.get("Job_Owner", "")).partition("@")[0],
    )


def array_index(id_: str) -> int | None:
    """The index of a subjob (`123[4].server`); None for any other job."""
    match = re.match(r"\d+\[(\d+)\]", id_)
    if match:
        return int(match[1])
    return None


def array_id(id_: str) -> str:
    """The id under which qstat is asked for a job: of a subjob, that of its array."""
    return re.sub(r"\[\d+\]", "[]", id_, count=1)


def user_limit(text: object) -> int | None:
    """The limit for any one user in `[u:PBS_GENERIC=5]`."""
    match = re.search(r"u:PBS_GENERIC=(\d+)", str(text))
    if match:
        return int(match[1])
    return None


def table(job: Record, key: str) -> Record:
    """What a record has under this key, if that is a record itself; else an empty one."""
    value = job.get(key)
    if isinstance(value, Mapping):
        return value
    return {}
