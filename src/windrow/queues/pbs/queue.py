"""PBS Pro and OpenPBS behind the port: qsub, qstat, qselect, qdel and pbsnodes.

Rule 1: one `qstat -x` answers for all jobs; if the server keeps no history, a finished job is
absent.
Rule 2: jobs take whole nodes (`place=scatter:exclhost`) and are never rerun.
Rule 3: a job goes to its directory and opens its output itself: PBS starts jobs at home, and would
copy outputs late.
Rule 4: jobs of one node, until an agent can start something on the other nodes of a PBS job (see
`agent.hosts`).
"""

import os
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

from windrow.errors import UserError
from windrow.model.resources import meet
from windrow.model.site import kinds_of
from windrow.queues import command
from windrow.queues.batch import BatchQueue, Wording, answered
from windrow.queues.command import Run
from windrow.queues.pbs import text
from windrow.queues.pbs.text import Record, table
from windrow.queues.port import JobSpec, JobStatus, Limits, Snapshot
from windrow.queues.script import array_name, array_script, placed_script, redirected_script, tag_of
from windrow.queues.spec import check_spec

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")
UNUSABLE = ("down", "offline", "unknown", "stale", "initializing")
DEFAULT_ARRAY = 10000  # max_array_size if the server does not say


@dataclass(frozen=True, slots=True)
class PbsProfile:
    """Where jobs go and whom they are charged to; empty means what the site does by default."""

    queue: str = ""
    account: str = ""
    project: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value and not NAME.fullmatch(value):
                raise UserError(
                    f"{field.name} = {value!r} of the PBS queue must be one name of letters and "
                    "digits"
                )

    @property
    def options(self) -> list[str]:
        """The profile as options of qsub."""
        named = (("-q", self.queue), ("-A", self.account), ("-P", self.project))
        return [text for option, value in named if value for text in (option, value)]


class PbsQueue(BatchQueue):
    """A queue of a PBS server. `env` is the environment of its commands."""

    name = "pbs"
    wording = Wording("PBS", text.UNKNOWN_OUTCOME, text.TRANSIENT, text.OVER_ALREADY)

    def __init__(
        self,
        profile: PbsProfile | None = None,
        *,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
        run: Run = command.run,
    ) -> None:
        self.profile = profile or PbsProfile()
        given = dict(os.environ if env is None else env)
        super().__init__(given, given, timeout_s, run)

    def limits(self) -> Limits:
        """What may be asked for, read once: the queue, the server and the nodes."""
        return self._limits

    @cached_property
    def _limits(self) -> Limits:
        nodes = self._nodes()
        record = self._queue_record
        most = table(record, "resources_max")
        resources = [table(node, "resources_available") for node in nodes.values()]
        shapes = [text.parse_shape(resource) for resource in resources]
        return Limits(
            nodes=len(nodes),
            shape=meet(shapes),
            kinds=kinds_of(shapes),
            max_nodes=1,
            max_walltime_s=text.parse_duration(most.get("walltime")),
            max_jobs=text.user_limit(record.get("max_queued")),
            max_array=int(str(self._server.get("max_array_size", DEFAULT_ARRAY))),
            usable_nodes=(usable := sum(map(_is_usable, nodes.values()))),
            narrow="PBS: jobs of one node (Windrow cannot use more of one PBS job yet)",
            closed=""
            if usable
            else f"all {len(nodes)} nodes of queue {self._queue} are down or offline",
        )

    def _submission(self, specs: Sequence[JobSpec]) -> tuple[list[str], str]:
        first = specs[0]
        check_spec(first, self.limits(), f"queue {self._queue}")
        chunk = f"select={first.nodes}:{text.chunk(self.limits().shape.cores, first.per_node)}"
        limits = [
            "-l",
            chunk,
            "-l",
            "place=scatter:exclhost",
            "-l",
            f"walltime={text.format_duration(first.limit_s)}",
        ]
        job = ["qsub", *limits, "-r", "n", "-j", "oe", "-o", "/dev/null", *self.profile.options]
        if len(specs) == 1:
            return [*job, "-N", first.tag], placed_script(redirected_script(first), first.workdir)
        array = ["-N", array_name(specs), "-J", f"0-{len(specs) - 1}"]
        return [*job, *array], placed_script(array_script(specs, "PBS_ARRAY_INDEX"), first.workdir)

    def _accepted(self, out: str) -> str | None:
        id_ = re.fullmatch(r"\d+(\[\])?(\.\S+)?", out.strip())
        if id_:
            return id_[0]
        return None

    def _member(self, whole: str, index: int) -> str:
        return whole.replace("[]", f"[{index}]", 1)

    def status(self, ids: Collection[str]) -> Mapping[str, JobStatus]:
        """What PBS knows of these jobs, finished ones included if the server keeps a history."""
        known = self._jobs(ids)
        return {id_: text.parse_status(id_, known[id_]) for id_ in ids if id_ in known}

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """The ids of the newest jobs with these tags, by one qselect for all of the user's jobs and
        one qstat."""
        if not tags:
            return {}
        ids = self._ask(["qselect", "-x", "-u", self._user]).split()
        wanted = set(tags)
        found = dict[str, str]()
        for id_, job in sorted(self._jobs(ids).items(), key=lambda item: _age(item[0])):
            tag = tag_of(str(job.get("Job_Name", "")), text.array_index(id_))
            if tag in wanted and "[]" not in id_:
                found[tag] = id_
        return {tag: found[tag] for tag in tags if tag in found}

    def snapshot(self) -> Snapshot:
        """All jobs of the queue that run or stand in line, in PBS's own order, and its usable
        nodes."""
        jobs = text.parse_json(self._ask(["qstat", "-t", "-f", "-F", "json"]), "Jobs")
        here = [
            text.parse_others(id_, job)
            for id_, job in jobs.items()
            if job.get("queue") == self._queue
        ]
        listed = [job for job in here if job is not None]
        usable = sum(map(_is_usable, self._nodes().values()))
        return Snapshot(
            time.time(), usable, tuple(sorted(listed, key=lambda job: not job.is_running))
        )

    def probe(self, nodes: int, walltime_s: int) -> float | None:  # noqa: ARG002
        """None: PBS gives no estimate before a job is submitted."""
        return None

    def cancel(self, ids: Collection[str]) -> None:
        """Ask that these jobs go. Jobs that are over already or unknown are not an error."""
        if ids:
            self.wording.check_cancelled(self._command(["qdel", *ids]), "qdel")

    def _jobs(self, ids: Collection[str]) -> dict[str, Record]:
        if not ids:
            return {}
        asked = list(dict.fromkeys(map(text.array_id, ids)))
        answer = self._command(["qstat", "-x", "-t", "-f", "-F", "json", *asked])
        return text.parse_json(
            answer.out if self.wording.is_all_over(answer) else answered(answer, "qstat"), "Jobs"
        )

    @cached_property
    def _server(self) -> Record:
        servers = text.parse_json(self._ask(["qstat", "-B", "-f", "-F", "json"]), "Server")
        return next(iter(servers.values()), {})

    @cached_property
    def _queue(self) -> str:
        name = self.profile.queue or str(self._server.get("default_queue", ""))
        if not name:
            raise UserError(
                "this PBS server has no default queue; set queue in the profile of the PBS queue"
            )
        return name

    @cached_property
    def _queue_record(self) -> Record:
        queues = text.parse_json(self._ask(["qstat", "-Q", "-f", "-F", "json"]), "Queue")
        if self._queue not in queues:
            raise UserError(f"this PBS has no queue {self._queue!r}; it has {', '.join(queues)}")
        return queues[self._queue]

    def _nodes(self) -> dict[str, Record]:
        # A node that names a queue serves that queue alone.
        nodes = text.parse_json(self._ask(["pbsnodes", "-a", "-F", "json"]), "nodes")
        mine = {
            name: node
            for name, node in nodes.items()
            if node.get("queue", self._queue) == self._queue
        }
        if not mine:
            raise UserError(f"queue {self._queue} of this PBS has no nodes")
        return mine


def _is_usable(node: Record) -> bool:
    return not any(word in str(node.get("state", "")) for word in UNUSABLE)


def _age(id_: str) -> tuple[int, int]:
    number = re.match(r"\d+", id_)
    index = text.array_index(id_)
    return (int(number[0]) if number else 0, -1 if index is None else index)
