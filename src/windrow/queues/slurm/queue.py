"""Slurm behind the port: sbatch, squeue, scancel and sinfo, with sacct and sacctmgr where a site
keeps accounts.

Rule 1: one query answers for all jobs: squeue for the user's own (the controller filters by user,
which is cheap for it), then sacct for those that it has forgotten (after MinJobAge). Absent from
both means absent, never finished.
Rule 2: jobs are never requeued: a job that Slurm would run twice would be two jobs under one id.
They take whole nodes or, where users share these, parts (`sharing`), as each says itself.
Rule 3: what was surely refused is SpecError or QueueError; if sbatch got no answer, the outcome is
unknown, and often the job exists (seen with 22.05: a controller that hung for ten seconds accepted
the job afterwards).
"""

import math
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from math import inf

from windrow.errors import UserError
from windrow.model.nodes import NOTHING, Need
from windrow.model.resources import NodeShape
from windrow.queues import command
from windrow.queues.batch import BatchQueue
from windrow.queues.command import Answer, Run
from windrow.queues.local.rendezvous import JOB_VARIABLES
from windrow.queues.port import (
    JobSpec,
    JobStatus,
    Life,
    Limits,
    OthersJob,
    PastJob,
    QueueError,
    Snapshot,
)
from windrow.queues.script import array_name, array_script, job_script, redirected_script, tag_of
from windrow.queues.slurm import text
from windrow.queues.slurm.answers import Shared
from windrow.queues.slurm.limits import SiteLimits, allowed_accounts, read_limits, read_nodes
from windrow.queues.slurm.profile import (
    VARIABLES,
    SlurmProfile,
    ignored_variables,
    with_environment,
)
from windrow.queues.slurm.sharing import LONG_S, Counted
from windrow.queues.slurm.text import SlurmNode
from windrow.queues.slurm.tres import less, tightest, usage_argv, used_of
from windrow.queues.spec import check_spec

BATCH = 500  # ids in one command line: well below what a kernel takes, and what slurmdbd likes
REMEMBER = "now-30days"  # how far back `find` looks in the accounts
RESERVATIONS_S = 300.0
"""How old what is known of reservations may get."""
KEPT = (
    "SLURM_CONF",
    "SLURM_CLUSTERS",
    "SLURM_JWT",
)  # what of an outer job's SLURM_ variables an inner one may see
# By which Slurm is found again, from cron say.
WITH_RUN = ("SLURM_CONF", "SLURM_CLUSTERS", "PATH")
# Settings of the user's shell that would change what is asked or how it is answered (see also
# `with_environment`).
FOREIGN = ("SLURM_HINT", "SLURM_TIME_FORMAT")
FOREIGN_PREFIXES = ("SBATCH_", "SQUEUE_", "SACCT_", "SINFO_", "SCANCEL_")
# What sbatch says of a job that it will never take, whatever its size and whenever it is asked.
WRONG_SETTINGS = re.compile(r"invalid|unrecogni[sz]ed|not permitted|permission denied", re.I)


class SlurmQueue(BatchQueue):
    """The queue of a Slurm partition. `env` is the environment of its commands and, as sbatch does
    it, of the jobs."""

    name = "slurm"
    wording = text.WORDING

    def __init__(
        self,
        profile: SlurmProfile | None = None,
        *,
        env: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
        run: Run = command.run,
    ) -> None:
        given = os.environ if env is None else env
        self.profile, self._counting = with_environment(profile or SlurmProfile(), given)
        self.shell = self._counting | {name: given[name] for name in WITH_RUN if given.get(name)}
        self._ignored = ignored_variables(self.profile, given)
        self._hides = False  # whether jobs are hidden, as was seen so far
        self.part: NodeShape | None = None
        """In what nodes and jobs are counted, if these are parts of nodes (`in_parts`)."""
        self._takes_any = False  # nodes for such parts, by the last look: all others are in use
        self._reserved = ""
        self._reserved_at_s = -inf
        clean = _clean(given)
        # The format of times is not for sbatch in earnest: the job would inherit it.
        super().__init__(clean, {**clean, "SLURM_TIME_FORMAT": "%s"}, timeout_s, run)

    def limits(self) -> Limits:
        """What may be asked for, read once: the partition, the nodes, the controller, the user's
        associations."""
        return self._site.limits

    def forget(self) -> None:
        """What other runs of this user were told is too old: ask."""
        if isinstance(self._run, Shared):
            self._run.forget()

    def in_parts(self, part: NodeShape) -> "SlurmQueue":
        """The same queue, which counts nodes and jobs in such parts."""
        other = copy(self)
        other.part = part
        return other

    def in_nodes(self) -> "SlurmQueue":
        """The same queue for jobs that have whole nodes, whatever the partition allows."""
        other = copy(self)
        other.profile = replace(self.profile, share="nodes")
        other.__dict__.pop("_site", None)
        return other

    @property
    def place(self) -> str:
        """Which partition of which cluster this is: a home may be shared by several clusters.

        What is learned of parts of one size says little of others.
        """
        if self.part is None:
            unit = ""
        else:
            unit = "-".join(str(int(one)) for one in self.part.amounts().values() if one < inf)
        return ".".join(
            part for part in (self.name, self._site.cluster, self._site.partition, unit) if part
        )

    @cached_property
    def _site(self) -> SiteLimits:
        try:
            return read_limits(self._ask, self.profile, self._user)
        except UserError as error:
            raise UserError(f"{error}{self._sources}") from None

    @property
    def notes(self) -> tuple[str, ...]:
        """Which settings come from the user's shell, and which variables there do not count."""
        counting = self._counting
        used = tuple(
            f"{key} {counting[name]} (from {name})"
            for key, name in VARIABLES.items()
            if name in counting
        )
        if not self._ignored:
            return used
        which = f"{', '.join(self._ignored)} {'is' if len(self._ignored) == 1 else 'are'} ignored"
        return (
            *used,
            f"{which}; options that all jobs need go into extra of [queues.slurm] in windrow.toml",
        )

    @property
    def _sources(self) -> str:
        """Where settings came from, for errors about them."""
        if self._counting:
            return f" (from {', '.join(self._counting)})"
        return ""

    def _submission(self, specs: Sequence[JobSpec]) -> tuple[list[str], str]:
        first = specs[0]
        # Most sites leave EnforcePartLimits off: Slurm would accept an impossible job and let it
        # wait for ever.
        if first.part is None:
            limits = self.limits()
            shape = self._shape(first.nodes, first.limit_s, first.per_node, first.avoid)
        else:
            limits = replace(self.limits(), nodes=self._counted(first.part).most(), max_nodes=None)
            shape = self._parts(first.nodes, first.part, first.limit_s, first.avoid)
        check_spec(first, limits, f"partition {self._site.partition}")
        job = [*self._to_cluster(["sbatch", "--parsable"]), *self._allowed(shape)]
        if first.notice_s and not any(
            option.startswith("--signal") for option in self.profile.extra
        ):  # at preemption, too, if the site says so
            job.append(f"--signal=B:USR1@{min(first.notice_s, 65535)}")
        job.append(f"--chdir={first.workdir}")
        if len(specs) == 1:
            return _alone(job, first)
        # Each member of an array redirects its own output: no pattern of sbatch makes arbitrary
        # names.
        array = [
            f"--job-name={array_name(specs)}",
            "--output=/dev/null",
            f"--array=0-{len(specs) - 1}",
        ]
        return [*job, *array], array_script(specs, "SLURM_ARRAY_TASK_ID")

    def _shape(
        self, nodes: int, walltime_s: int, per_node: Need = NOTHING, avoid: Sequence[str] = ()
    ) -> list[str]:
        mib = {"mem": per_node.memory_bytes // 1024**2, "tmp": -(-per_node.disk_bytes // 1024**2)}
        whole = [
            f"--nodes={nodes}",
            "--exclusive",
            f"--mem={mib['mem']}M" if mib["mem"] else "--mem=0",  # all that a node has
            f"--time={text.format_duration(walltime_s)}",
            "--no-requeue",
        ]
        if nodes > 1:
            whole.append("--no-kill")  # the loss of one node leaves the job the others
        whole += [f"--mincpus={per_node.cores}"] if per_node.cores else []
        whole += [f"--tmp={mib['tmp']}M"] if mib["tmp"] else []
        whole += self._own_options()
        whole += text.gres_option(per_node.counts, self.profile.extra)
        return whole + self._excluding([*self._site.kept_out, *avoid])

    def _parts(
        self, parts: int, part: NodeShape, walltime_s: int, avoid: Sequence[str] = ()
    ) -> list[str]:
        """The options of a job of parts of nodes: as many tasks of Slurm, each with what a part
        has, on whichever nodes have room; with devices, which Slurm counts by node, on one."""
        memory = math.ceil((part.memory_bytes or 0) / part.cores / 1024**2)
        counted = self._counted(part)
        most = counted.sharing.most_nodes
        devices = tuple((name, parts * count) for name, count in part.counts if count)
        options = [
            f"--ntasks={parts}",
            f"--cpus-per-task={part.cores}",
            f"--mem-per-cpu={memory}M",
            f"--time={text.format_duration(walltime_s)}",
            "--no-requeue",
        ]
        options += ["--no-kill"] if parts > 1 else []
        if parts == 1 or devices:
            options.append("--nodes=1")
        elif most is not None:
            options.append(f"--nodes=1-{min(most, parts)}")
        options += [f"--tmp={-(-part.disk_bytes // 1024**2)}M"] if part.disk_bytes else []
        options += self._own_options()
        options += text.gres_option(devices, self.profile.extra)
        return options + self._excluding([*self._site.kept_out, *counted.others, *avoid])

    def _allowed(self, options: Iterable[str]) -> list[str]:
        """These options, without a word on memory if the site wants none."""
        if not self.profile.memory:
            return list(options)
        return [option for option in options if not option.startswith("--mem")]

    def _own_options(self) -> list[str]:
        """What the profile says. Of a list of nodes each job would have to have all: jobs are kept
        off all others instead."""
        return [
            option
            for option in self.profile.options
            if not (self.profile.has_list and option.startswith("--nodelist="))
        ]

    def _excluding(self, names: Iterable[str]) -> list[str]:
        """The option that keeps a job off these nodes; of two such options the last one counts."""
        out = [*dict.fromkeys(names)]
        if not out:
            return []
        return ["--exclude=" + ",".join([*filter(None, [self.profile.value("exclude")]), *out])]

    def _counted(self, part: NodeShape, nodes: Sequence[SlurmNode] | None = None) -> Counted:
        """The partition in such parts, as its nodes are now or were at first."""
        site = self._site
        assert site.limits.sharing is not None, "else there are no parts"
        every = site.nodes if nodes is None else nodes
        return Counted(site.limits.sharing, part, every, site.pool, is_any=self._takes_any)

    def _counted_now(
        self, part: NodeShape, nodes: Sequence[SlurmNode], jobs: Sequence[OthersJob], now_s: float
    ) -> Counted:
        """The same; nodes that are kept for others count if there is room on them, and none on all
        the rest for long."""
        self._takes_any = False
        usual = self._counted(part, nodes)
        if usual.free_in_s(jobs, self._user, now_s) <= LONG_S:
            return usual
        self._takes_any = True
        every = self._counted(part, nodes)
        if every.free_in_s(jobs, self._user, now_s) == 0:
            return every
        self._takes_any = False
        return usual

    def _to_cluster(self, argv: Sequence[str]) -> list[str]:
        """The command for the profile's cluster. (sacctmgr knows all clusters, and is told which in
        its conditions.)"""
        if self.profile.cluster and argv[0] != "sacctmgr":
            cluster = [f"--clusters={self.profile.cluster}"]
        else:
            cluster = []
        return [argv[0], *cluster, *argv[1:]]

    def _command(self, argv: Sequence[str], stdin: str = "") -> Answer:
        answer = super()._command(self._to_cluster(argv), stdin)
        if self.profile.cluster:
            return replace(answer, out=text.without_headings(answer.out))
        return answer

    def _accepted(self, out: str) -> str | None:
        return text.submitted_id(out)

    def _member(self, whole: str, index: int) -> str:
        return f"{whole}_{index}"

    def status(self, ids: Collection[str]) -> Mapping[str, JobStatus]:
        """What Slurm knows of these jobs: one squeue for all, and one sacct for those that it has
        forgotten."""
        if not ids:
            return {}
        known = {row.status.id: row.status for row in self._squeue()}
        forgotten = [id_ for id_ in ids if id_ not in known]
        if forgotten and self._site.has_accounts:
            for some in _batches(forgotten):
                known |= {
                    row.status.id: row.status for row in self._sacct("--jobs", ",".join(some))
                }
        return {id_: known[id_] for id_ in ids if id_ in known}

    def find(self, tags: Collection[str]) -> Mapping[str, str]:
        """The ids of the newest jobs with these tags: all that the controller knows, and thirty
        days of accounts."""
        self.forget()
        wanted = set(tags)
        found: dict[str, str] = {}
        rows = self._squeue() + (
            self._sacct("--starttime", REMEMBER) if self._site.has_accounts else []
        )
        for row in sorted(rows, key=lambda row: text.id_order(row.status.id)):
            tag = tag_of(row.name, text.array_index(row.status.id))
            if tag in wanted:
                found[tag] = row.status.id
        return {tag: found[tag] for tag in tags if tag in found}

    def snapshot(self) -> Snapshot:
        """All running and waiting jobs of the partition and its usable nodes, by one squeue, sinfo
        and scontrol.

        If more nodes are in use than these jobs have, squeue is asked once more: some may have
        started in between.

        Held jobs and those that wait for a date or another job are left out: they are not in line.
        A draining node counts as usable while it runs a job, so running jobs always fit; it is not
        offered to new ones.
        """
        jobs = self._jobs()
        nodes = read_nodes(self._ask, self._site.partition, self.profile)
        if _unexplained(nodes, jobs) and not self._hides:  # or jobs have started since: look again
            self._hides = _unexplained(nodes, self._jobs()) > 0
        if self._hides:
            hidden = _unexplained(nodes, jobs)
        else:
            hidden = 0
        usable = sum(node.is_usable for node in nodes)
        offered = sum(node.is_open and node.name in self._site.pool for node in nodes)
        if self.part is not None:
            counted = self._counted_now(self.part, nodes, jobs, time.time())
            usable = counted.parts()
            offered = counted.parts(is_open=True)
            jobs = counted.jobs(jobs, self._user)
        now = time.time()
        is_inside = any(option.startswith("--reservation") for option in self.profile.extra)
        names = {node.name for node in nodes if not is_inside}
        closures = text.parse_closures(self._reservations(now), names, now)
        if self.part is not None:  # what is closed, in parts
            each = usable / max(1, len(nodes))
            closures = tuple((start, end, math.ceil(n * each)) for start, end, n in closures)
        left = self._left_of_bounds() if offered else None
        return Snapshot(now, usable, tuple(jobs), offered, closures, hidden, left)

    def _left_of_bounds(self) -> int | None:
        """How many nodes or parts are left by the limits that jobs of this user or account share;
        None if there are none, or Slurm does not tell what is in use of them."""
        shared = [bound for bound in self._site.bounds if bound.is_of_many]
        if not shared:
            return None
        told = self._command(usage_argv(shared, self._user))
        if not told.is_good:
            return None
        used = used_of(told.out, shared, self._user)
        sharing = self._site.limits.sharing
        if self.part is not None and sharing is not None:
            most = sharing.less(used).most_parts(self.part)
            return None if most is None else most[0]
        found = (tightest(less(shared, used), kind.shape) for kind in self._site.limits.kinds)
        return min((most[0] for most in found if most is not None), default=None)

    def _reservations(self, now_s: float) -> str:
        """What Slurm tells of reservations, asked seldom: they are made long before."""
        if not 0 <= now_s - self._reserved_at_s < RESERVATIONS_S:
            told = self._command(["scontrol", "-o", "show", "reservation"])
            if not told.is_good:
                return ""
            self._reserved_at_s = now_s
            self._reserved = told.out
        return self._reserved

    def _jobs(self) -> list[OthersJob]:
        partition = self._site.partition
        columns, parse = text.SNAPSHOT_FORMAT, text.parse_snapshot
        if self.part is not None:
            columns, parse = text.SHARED_FORMAT, text.parse_shared
        states = "PENDING,CONFIGURING,RUNNING,SUSPENDED,STOPPED,COMPLETING"
        which = [f"--partition={partition}", f"--states={states}"]
        told = self._listed("--array", *which, f"--Format={columns}")
        return parse(told, self.limits().max_walltime_s or text.FOREVER_S)

    def past_jobs(self, since_s: float) -> list[PastJob] | None:
        """Everybody's jobs of the partition since then, by one sacct; None if the site keeps no
        accounts."""
        if not self._site.has_accounts:
            return None
        limit_s = self.limits().max_walltime_s or text.FOREVER_S
        if self.part is None:
            argv = text.past_argv(self._site.partition, since_s, time.time())
            return text.parse_past(self._ask(argv), limit_s, self._user)
        argv = text.past_argv(self._site.partition, since_s, time.time(), text.PAST_SHARED_FORMAT)
        past = text.parse_shared_past(self._ask(argv), limit_s, self._user)
        return self._counted(self.part).past(past)

    def lives(self, since_s: float) -> list[Life] | None:
        """How all users' jobs ended, those that Slurm ran again once for each time, as far as one
        may see them."""
        if not self._site.has_accounts:
            return None
        now = time.time()
        argv = text.past_argv(self._site.partition, since_s, now)[:-1]
        return text.parse_lives(
            self._ask([*argv, "--duplicates", f"--format={text.LIFE_FORMAT}"]), since_s, now
        )

    def probe(self, nodes: int, walltime_s: int) -> float | None:
        """When Slurm says (`sbatch --test-only`) that such a job would start; None if it says
        nothing.

        It ignores backfilling and holds the controller's locks: ask seldom.
        """
        answer = self._try(nodes, walltime_s)
        unanswered = (
            answer.code is None
            or text.TRANSIENT.search(answer.words)
            or text.UNKNOWN_OUTCOME.search(answer.words)
        )
        if not answer.is_good and unanswered:
            raise QueueError(f"sbatch --test-only failed: {answer.words}")
        return text.parse_probe(answer.err + answer.out)

    def check(self) -> None:
        """UserError if Slurm would take no job at all: an account, a QOS or an option that it
        does not know."""
        answer = self._try(1, min(60, self.limits().max_walltime_s or 60))
        is_sure = answer.code is not None and not text.TRANSIENT.search(answer.words)
        if is_sure and not answer.is_good and WRONG_SETTINGS.search(answer.words):
            named = ", ".join(option.removeprefix("--") for option in self.profile.options)
            allowed = (
                allowed_accounts(self._ask, self._user, self._site) or "correct it in windrow.toml"
            )
            what = f"{named or 'your defaults'}{self._sources}"
            raise UserError(f"Slurm accepts no job with {what}: {answer.words}; {allowed}")
        if is_sure and not answer.is_good:
            self._refuse_unwelcome(answer)

    def _refuse_unwelcome(self, answer: Answer) -> None:
        """UserError if the site refuses an option that jobs can do without, as its own rules for
        submissions may (`job_submit`)."""
        walltime_s = min(60, self.limits().max_walltime_s or 60)
        for option, key in (("--mem", 'memory = "default"'), ("--exclusive", 'share = "cores"')):
            if self._try(1, walltime_s, without=option).is_good:
                raise UserError(
                    f"this site accepts no job with {option}: {answer.words}; set {key} in "
                    "[queues.slurm] of windrow.toml"
                )

    def _try(self, nodes: int, walltime_s: int, without: str = "--help") -> Answer:
        """What Slurm says of such a job, without options that begin so."""
        if self.part is None:
            shape = self._shape(nodes, walltime_s)
        else:
            shape = self._parts(nodes, self.part, walltime_s)
        given = [option for option in self._allowed(shape) if not option.startswith(without)]
        argv = ["sbatch", "--test-only", *given, "--output=/dev/null"]
        return self._command(argv, stdin="#!/bin/sh\n:\n")

    def cancel(self, ids: Collection[str]) -> None:
        """Ask that these jobs go. Jobs that are over already or unknown are not an error."""
        for some in _batches(ids):
            # Slurm keeps no record of an array's member that is cancelled before it ran (22.05:
            # neither squeue nor sacct knows it). Held first it becomes a job of its own, whose end
            # is told. If that fails, so be it.
            if members := [id_ for id_ in some if text.array_index(id_) is not None]:
                self._command(["scontrol", "hold", ",".join(members)])
            self.wording.check_cancelled(self._command(["scancel", *some]), "scancel")

    def _squeue(self) -> list[text.Row]:
        every = ("--me", "--array", "--states=all")
        return text.parse_status(self._listed(*every, f"--Format={text.STATUS_FORMAT}"))

    def _listed(self, *which: str) -> str:
        """What squeue tells of these jobs. It need not ask first whether there are other
        clusters."""
        argv = ["squeue", "--noheader", *which]
        if not self.profile.cluster and not self._site.is_federated:
            argv.insert(1, "--local")
        return self._ask(argv)

    def _sacct(self, *which: str) -> list[text.Row]:
        user = f"--user={self._user}"
        argv = [
            "sacct",
            "--allocations",
            "--noheader",
            "--parsable2",
            user,
            f"--format={text.SACCT_FORMAT}",
            *which,
        ]
        return text.parse_sacct(self._ask(argv))


def _clean(env: Mapping[str, str]) -> dict[str, str]:
    """The environment without what would change Slurm's answers, or leak from an outer job into the
    ones it submits."""
    inside = "SLURM_JOB_ID" in env
    return {
        key: value
        for key, value in env.items()
        if key not in FOREIGN
        and key not in JOB_VARIABLES
        and not key.startswith(FOREIGN_PREFIXES)
        and not (inside and key.startswith(("SLURM_", "SLURMD_")) and key not in KEPT)
    }


def _unexplained(nodes: Iterable[SlurmNode], jobs: Iterable[OthersJob]) -> int:
    """How many nodes are in use beyond those of these jobs."""
    return max(
        0, sum(node.is_busy for node in nodes) - sum(job.nodes for job in jobs if job.is_running)
    )


def _batches(ids: Iterable[str]) -> Iterator[list[str]]:
    every = list(ids)
    return (every[i : i + BATCH] for i in range(0, len(every), BATCH))


def _alone(job: Sequence[str], spec: JobSpec) -> tuple[list[str], str]:
    named = [*job, f"--job-name={spec.tag}"]
    if "\\" in spec.output:  # which sbatch takes for a quote, and leaves out
        return [*named, "--output=/dev/null"], redirected_script(spec)
    output = spec.output.replace("%", "%%")  # sbatch fills in %j and its like
    return [*named, f"--output={output}"], job_script(spec)
