"""Generators of batch logs by name: `generate_log("lublin", seed=1, jobs=10_000, nodes=256)`.

Laws.
1. Same model, seed, arguments and numpy: same log, under any PYTHONHASHSEED and on any machine.
2. Every column has its own stream of random numbers, so a parameter changes only the columns that
   it is about.
3. Of jobs, days and load, two fix the third. Given one of jobs and days, the load is the model's
   own or as set; given both, these jobs come in these days and a load that is set as well is
   refused.
4. Submissions ascend from 0, which is midnight; run times do not exceed requests; nothing is wider
   than the machine.
"""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.random import Generator

from windrow.errors import UserError
from windrow.model import Log
from windrow.model.bounds import NODES_MAX
from windrow.recipes.logs.clusters import CLUSTERS, ClusterProfile, cluster_log
from windrow.recipes.logs.lublin import PUBLISHED, lublin_log, refuse_too_many
from windrow.recipes.logs.sessions import in_sessions
from windrow.recipes.workflows.recipe import Parameter, settings

_LOAD = (0, 100)


@dataclass(frozen=True, slots=True)
class LogModel:
    """A generator of logs as users see it. One of `jobs` and `days` is the default length, the
    other None."""

    name: str
    summary: str
    source: str
    nodes: int
    jobs: int | None
    days: float | None
    parameters: tuple[Parameter, ...]


_USERS = Parameter(
    "users", 200, "number of users; the k-th submits in proportion to k ** -0.7", (1, 1_000_000)
)

_SESSION = Parameter(
    "session", 1.0, "jobs that a user submits together on average; 1 is each alone", (1, 1000)
)
_MOST = Parameter("session_most", 400, "the most jobs of a session", (1, 100_000))


_LUBLIN = LogModel(
    name="lublin",
    summary="rigid jobs of a parallel supercomputer, by the Lublin-Feitelson model",
    source="U. Lublin, D. G. Feitelson, The workload on parallel supercomputers, JPDC 63(11), 2003",
    nodes=128,
    jobs=10_000,
    days=None,
    parameters=(
        Parameter(
            "load",
            0.7,
            "offered load on the machine, by scaling gaps; 0 leaves gaps as published",
            _LOAD,
        ),
        Parameter(
            "kind", "batch", f"which published numbers: {', '.join(PUBLISHED)}", list(PUBLISHED)
        ),
        Parameter(
            "widest",
            0,
            "nodes of the widest job that may occur; 0 is the whole machine",
            (0, NODES_MAX),
        ),
        Parameter(
            "overestimate",
            2.0,
            "f: jobs request run * uniform(1, 1 + f), rounded up to round values",
            (0, 1000),
        ),
        _USERS,
        _SESSION,
        _MOST,
    ),
)


def _cluster_model(cluster: ClusterProfile) -> LogModel:
    return LogModel(
        name=cluster.name,
        summary=f"stand-in for the cluster {cluster.name.capitalize()} ({cluster.site})",
        source="Y. Zhang, C. Koelbel, K. Cooper, Batch Queue Resource Scheduling, Cluster 2009, "
        "figures 8 and 11",
        nodes=cluster.nodes,
        jobs=None,
        days=cluster.days,
        parameters=(
            Parameter(
                "load",
                cluster.actual_load,
                "offered load on the machine, reached by scaling gaps",
                _LOAD,
            ),
            _USERS,
            _SESSION,
            _MOST,
        ),
    )


LOG_MODELS: Mapping[str, LogModel] = {
    model.name: model
    for model in (_LUBLIN, *(_cluster_model(cluster) for cluster in CLUSTERS.values()))
}


_CONTRADICTION = (
    "jobs, days and load together contradict each other; leave one out, the other two fix it"
)


def generate_log(
    model: str,
    *,
    seed: int = 0,
    jobs: int | None = None,
    days: float | None = None,
    nodes: int | None = None,
    parameters: Mapping[str, str] | None = None,
) -> Log:
    """A log by the model of that name. UserError if model, parameter or value is not known or
    they contradict.

    Neither jobs nor days: the model's own length. A million jobs take about a second.
    """
    if model not in LOG_MODELS:
        raise UserError(f"there is no log model {model!r}; the models are {', '.join(LOG_MODELS)}")
    chosen = LOG_MODELS[model]
    given = dict(parameters or {})
    values: dict[str, Any] = settings(f"model {model}", chosen.parameters, given)
    if model in CLUSTERS and values["load"] == 0:
        raise UserError("load must be above 0; leave it out for the load of the paper's table")
    _check_extent(jobs, days, nodes)
    if jobs is not None and days is not None and "load" in given:
        raise UserError(_CONTRADICTION)
    if jobs is None and days is None:
        jobs = chosen.jobs
        days = chosen.days
    make = partial(cluster_log, CLUSTERS[model]) if model in CLUSTERS else lublin_log
    size = chosen.nodes if nodes is None else nodes
    draw = partial(_stream, seed, model)
    mean = values.pop("session")
    most = values.pop("session_most")
    if mean > most:
        raise UserError(f"a session of {mean:g} jobs on average cannot have at most {most}")
    log = make(f"{model}-{seed}", draw, nodes=size, jobs=jobs, days=days, **values)
    return in_sessions(log, draw("sessions"), mean=mean, most=most, users=values["users"])


def _stream(seed: int, model: str, column: str) -> Generator:
    """The random numbers of one column. SHA-256, because Python's own hash of a text changes from
    run to run."""
    digest = hashlib.sha256(f"{model}/{seed}/{column}".encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "big")))


def _check_extent(jobs: int | None, days: float | None, nodes: int | None) -> None:
    if jobs is not None and jobs < 1:
        raise UserError(f"a log needs at least one job, not {jobs}")
    if days is not None and not (math.isfinite(days) and days > 0):
        raise UserError(f"a log needs a length in days above 0, not {days}")
    if nodes is not None and not 1 <= nodes <= NODES_MAX:
        raise UserError(f"a machine needs 1 to {NODES_MAX:,} nodes, not {nodes}")
    refuse_too_many(jobs or 0)
