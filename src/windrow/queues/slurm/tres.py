"""Limits on resources (TRES, as Slurm calls them) that accounts set, and how wide a job of whole
nodes may be.

Rule 1: a job is never larger than what its user, account or QOS may have at a time: it could never
start.
Rule 2: as in Slurm, the first that limits a resource counts, of the partition's QOS, the job's QOS
and the association. Only of the limits on groups of jobs all count, up to the topmost account,
if no QOS sets one.
Rule 3: a whole node takes all its cores and GPUs, and all its memory if Slurm counts memory.
What it would take of other resources (billing, licenses) is not known here: Slurm then lets the
job wait, and says why.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from windrow.model.resources import GPUS, NodeShape, gpus_of_type

# What limits a single job, by the names under which sacctmgr shows it: for each job, or for all of
# them at a time.
LIMITS = ("MaxTRES", "MaxTRESPerNode", "MaxTRESPerUser", "MaxTRESPerAccount", "GrpTRES")
_OF_GROUPS = "GrpTRES"
_OF_USERS = "MaxTRESPerUser"
_PER_NODE = "MaxTRESPerNode"
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([KMGTP]?)")


@dataclass(frozen=True, slots=True)
class Rule:
    """A QOS or an association as the accounts show it. `name` is what people call it."""

    name: str
    is_qos: bool
    row: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Bound:
    """The most that one job may have of a resource; of memory in bytes. `name` says in Slurm's
    words what sets it: this `limit` of `who`."""

    resource: str
    amount: int
    name: str
    is_per_node: bool = False
    limit: str = ""
    who: str = ""

    @property
    def is_of_many(self) -> bool:
        """Whether all jobs of a user or a group count together."""
        return self.limit in (_OF_GROUPS, _OF_USERS)

    def most_nodes(self, shape: NodeShape) -> int | None:
        """How many whole nodes that is, if all are like this; None: any number."""
        each = _takes(self.resource, shape)
        if not each:
            return None
        if self.is_per_node:
            if each <= self.amount:
                return None
            return 0
        return self.amount // each


def parse_tres(text: str) -> Iterator[tuple[str, int, str]]:
    """The resources of `cpu=8,mem=4G,gres/gpu=2` with their amounts, and each as it is written;
    memory in bytes."""
    for one in filter(None, text.split(",")):
        resource, _, value = one.partition("=")
        match = _AMOUNT.fullmatch(value)
        if match:
            unit = match[2] or ("M" if resource == "mem" else "")
            yield resource, int(float(match[1]) * 1024 ** " KMGTP".index(unit or " ")), one


def bounds_of(rules: Iterable[Rule], *, counts_memory: bool = True) -> list[Bound]:
    """All that bounds a job, by these rules in the order in which Slurm looks at them."""
    every = list(rules)
    found = list[Bound]()
    for limit in LIMITS:
        taken = set[str]()
        for rule in every:
            told = [one for one in parse_tres(rule.row.get(limit, "")) if one[0] not in taken]
            found += [
                Bound(
                    resource,
                    amount,
                    f"{limit} {text} of {rule.name}",
                    limit == _PER_NODE,
                    limit,
                    rule.name,
                )
                for resource, amount, text in told
                if counts_memory or resource != "mem"
            ]
            if rule.is_qos or limit != _OF_GROUPS:
                taken.update(resource for resource, _, _ in told)
    return found


def usage_argv(bounds: Iterable[Bound], user: str) -> list[str]:
    """The question for `used_of`: of these accounts and QOS alone, and of other users nothing, as
    there may be thousands."""
    every = list(bounds)
    accounts, qos = (
        sorted({match[1] for one in every if (match := re.search(pattern, one.who))})
        for pattern in (r"account (\S+)$", r"^QOS (\S+)$")
    )
    argv = ["scontrol", "-o", "show", "assoc_mgr", "flags=assoc,qos", f"users={user}"]
    argv += [f"accounts={','.join(accounts)}"] if accounts else []
    return [*argv, f"qos={','.join(qos)}"] if qos else argv


def used_of(out: str, bounds: Iterable[Bound], user: str) -> dict[str, int]:
    """What running jobs use of these limits by now, by the limits' names, as `scontrol -o show
    assoc_mgr` tells; without those of which it says nothing."""
    texts = {_record_name(line): line for line in out.splitlines()}
    found = dict[str, int]()
    for bound in bounds:
        if bound.is_of_many:
            line = texts.get(bound.who, "")
            if bound.limit == _OF_USERS:
                line = _of_user(line, _user_id(out, user))
            for resource, amount in _used(line):
                if resource == bound.resource:
                    found[bound.name] = amount
    return found


def _record_name(line: str) -> str:
    """Of whom a line of `show assoc_mgr` tells, as rules are named."""
    if match := re.match(r"QOS=(\S+)\(\d+\) ", line):
        return f"QOS {match[1]}"
    if match := re.match(r"ClusterName=\S* Account=(\S*) UserName=(?:(\S+)\(\d+\))? ", line):
        return f"user {match[2]} in account {match[1]}" if match[2] else f"account {match[1]}"
    return ""


def _user_id(out: str, user: str) -> str:
    match = re.search(rf"UserName={re.escape(user)}\((\d+)\)", out)
    if match:
        return match[1]
    return user


def _of_user(line: str, number: str) -> str:
    """What a QOS says of one user, with the name of the limit as if it were one for all."""
    users = line.partition("User Limits=")[2]
    match = re.search(rf"(?:^|[\s(]){re.escape(number)}\)?={{([^}}]*)}}", users)
    if match:
        return match[1].replace("MaxTRESPU=", "GrpTRES=")
    return ""


def _used(line: str) -> Iterator[tuple[str, int]]:
    """The resources of `GrpTRES=cpu=8(7),mem=N(400)` with what is used; memory in bytes."""
    match = re.search(r"\bGrpTRES=(\S*)", line)
    for one in match[1].split(",") if match else ():
        pair = re.fullmatch(r"([^=]+)=[^(]*\((\d+)\)", one)
        if pair:
            yield pair[1], int(pair[2]) << 20 * (pair[1] == "mem")


def tightest(bounds: Iterable[Bound], shape: NodeShape) -> tuple[int, Bound] | None:
    """How many nodes like this a job may have, and what says so; None if nothing does."""
    found = [(most, bound) for bound in bounds if (most := bound.most_nodes(shape)) is not None]
    return min(found, key=lambda pair: pair[0], default=None)


def less(bounds: Iterable[Bound], used: Mapping[str, int]) -> list[Bound]:
    """The same if so much of them is in use, by their names."""
    return [replace(one, amount=max(0, one.amount - used.get(one.name, 0))) for one in bounds]


def name_of_gres(name: str) -> str:
    """Our name of what Slurm calls `gpu`, `gpu:a100` or something else."""
    kind, _, of_type = name.partition(":")
    if kind != "gpu":
        return name
    if of_type:
        return gpus_of_type(of_type)
    return GPUS


def _takes(resource: str, shape: NodeShape) -> int:
    """What a whole node takes of a resource; 0 if that is not known."""
    kind, _, name = resource.partition("/")
    if kind == "gres":
        return dict(shape.counts).get(name_of_gres(name), 0)
    return {"cpu": shape.cores, "mem": shape.memory_bytes or 0, "node": 1}.get(resource, 0)
