"""Options that say what a simulated run meets, shared by `compare`, `plan` and `timeline`, and what
they amount to."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from windrow.cli import options, terminal
from windrow.cli.arguments import (
    count_of,
    duration_s,
    margin,
    number,
    positive,
    seed,
    size_bytes,
    whole,
)
from windrow.errors import UserError
from windrow.model import format_duration
from windrow.model.bounds import COUNT_MAX
from windrow.model.wording import count

if TYPE_CHECKING:
    from windrow.model.failures import Failures
    from windrow.trials.scenario import Scenario

MARGIN = 1.1
"""As in the papers: a simulated job requests a tenth more than it is expected to need."""

TIMES = """\
Times and durations are seconds, or a number with a unit: 90, 30m, 4h, 30d. Times count from the log's first submission.
"""  # noqa: E501


def add_workflow_and_log(parser: argparse.ArgumentParser) -> None:
    """The workflow to run, and the log that it meets."""
    options.add_workflow(parser)
    words = (
        "a log in the Standard Workload Format, plain or .gz (default: a synthetic one of "
        "128 nodes and 30 days)"
    )
    parser.add_argument("--log", metavar="LOG", help=words)


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """The rules of the cluster and of the run on it."""
    from windrow.sim.settings import REQUESTS

    group = parser.add_argument_group("the cluster and the run")
    add = options.adder(group)
    add("--cap K", positive, 16, help="maximum number of the run's jobs queued or running")
    add("--margin X", margin, MARGIN, help="request X times the expected run time")
    add("--policy P", default="conservative", help="as in windrow simulate")
    add("--priority Q", default="arrival", help="order of the queue, as in windrow simulate")
    add("--placement L", default="count", help="identities of nodes, as in windrow simulate")
    words = "requested times as in the log, or equal to the run times"
    add("--requests", default="actual", choices=tuple(REQUESTS), help=words)
    add("--cores C", positive, 1, help="cores of a node (default: 1, the papers' node)")
    add("--memory M", size_bytes, help="memory of a node, e.g. 256GB (default: no limit)")
    add("--disk D", size_bytes, help="disk of a node (default: no limit)")
    add("--gpus G", whole(0, COUNT_MAX), 0, help="GPUs of a node")
    words = "another resource of a node that tasks name, e.g. licence=2; may be repeated"
    group.add_argument(
        "--resource", type=count_of, action="append", default=[], metavar="NAME=N", help=words
    )
    add(
        "--noise S",
        number(0, 5, what="a spread"),
        0.0,
        help="spread of task times, e.g. 0.3 (default: 0, exact)",
    )
    options.add_copies(group)
    more = (
        "; tasks=1%%, agents, manager and queue can fail too, and slow=5%% of attempts take longer"
    )
    add_failures(add, more, "seed of the noise and of the failures")


def add_failures(add: Callable[..., None], more: str, seeds: str) -> None:
    """`--failures` and `--seed`."""
    words = (
        "let nodes fail, for example each once in 30 days for 4 hours: nodes=30d,repair=4h; "
        "or as listed in a file "
    )
    words += (
        "(time, node, repair): log=FILE; with jobs=lost, other users' jobs that are hit do "
        "not run again"
    )
    words += f"{more} (default: none fails)"
    add("--failures F", default="none", help=words)
    add("--seed N", seed, 0, help=seeds)


def add_one_run(parser: argparse.ArgumentParser) -> None:
    """The one run of `plan` and `timeline`: when it is submitted, and by which strategy."""
    add = options.adder(parser)
    add(
        "--at T",
        duration_s,
        dest="at_s",
        help="when to submit (default: 1d, or mid-way in a short log)",
    )
    add("--strategy S", default="auto", help="see below (default: auto, which is foresight)")


def add_meanings(parser: argparse.ArgumentParser) -> None:
    """The strategies with a sentence each, and how times are written, in the help."""
    from windrow.app.strategies import MEANINGS

    options.add_listings(parser, {"strategies": MEANINGS}, TIMES)


def read_scenario(args: argparse.Namespace) -> Scenario:
    """Read the files and put everything together. UserError if it cannot work."""
    from windrow.formats import read_log
    from windrow.formats.failure_log import read_failures
    from windrow.formats.open import read_simulated
    from windrow.manager.terms import CopyRules
    from windrow.model import NodeShape
    from windrow.sim.settings import ClusterSettings
    from windrow.trials.scenario import Scenario, embedded_log

    ClusterSettings(
        args.policy, args.priority, placement=args.placement
    )  # refuses unknown names first
    failures = read_failures(args.failures)
    with terminal.waiting(f"reading {args.workflow}"):
        workflow, checkpoints, mounts = read_simulated(args.workflow)
        if args.log is None:
            log = embedded_log()
        else:
            log = read_log(args.log)
    names = ("requests", "policy", "cap", "margin", "noise", "seed", "priority", "placement")
    rules = {name: getattr(args, name) for name in names}
    counts = {**dict(args.resource), **({"gpus": args.gpus} if args.gpus else {})}
    shape = NodeShape(args.cores, args.memory, args.disk, tuple(sorted(counts.items())))
    copies = CopyRules(args.reliability, args.speculate)
    if not (failures or copies or args.noise):  # no job is lost, and no task runs again
        checkpoints = {}
    rules |= {"copies": copies, "checkpoints": checkpoints}
    scenario = Scenario(workflow, log, shape=shape, failures=failures, mounts=mounts, **rules)
    _check_fit(scenario)
    return scenario


def read_one_run(args: argparse.Namespace) -> tuple[Scenario, int]:
    """The same for one run, and its time, checked."""
    scenario = read_scenario(args)
    if args.at_s is None:
        at_s = min(86400, scenario.last_s // 2)
    else:
        at_s = math.floor(args.at_s)
    check_within(scenario, "--at", at_s)
    return scenario, at_s


def check_within(scenario: Scenario, option: str, at_s: int) -> None:
    """Refuse a time beyond the log."""
    if at_s > scenario.last_s:
        last = f"{scenario.last_s:,} s ({format_duration(scenario.last_s)}) after the first"
        job = f"the last job of {scenario.log.name} is submitted {last}"
        raise UserError(f"{option} is after the end of the log: {job}")


def _policy(scenario: Scenario) -> str:
    """With what is not as usual."""
    policy = f"policy {scenario.policy}"
    if scenario.priority != "arrival":
        policy += f", priority {scenario.priority}"
    if scenario.placement != "count":
        policy += f", placement {scenario.placement}"
    return policy


def words(scenario: Scenario, args: argparse.Namespace) -> list[str]:
    """What is tried, in a few lines for people."""
    workflow = scenario.workflow
    log = scenario.log
    shape = scenario.shape
    work = f"{format_duration(workflow.work_s)} of work{terminal.guesses(workflow)}"
    source = "no log given, so a synthetic one: " if args.log is None else "log "
    nodes = f"{log.machine_nodes:,} nodes" + (f" of {shape.cores} cores" if shape.cores > 1 else "")
    lines = [
        f"workflow {workflow.name}: {len(workflow):,} tasks on {workflow.depth:,} levels, {work}",
        *workflow.repairs(),
        f"{source}{log.name}, {len(log):,} jobs on {nodes}, {_policy(scenario)}, "
        f"{scenario.requests} requests",
    ]
    noise = ""
    if scenario.noise:
        noise = f"; task times vary by a factor of about {math.exp(scenario.noise):.2g}"
    lines.append(
        f"cap {scenario.cap} jobs, requests {scenario.margin:g} times the expected run{noise}"
    )
    lines += [f"{words} (in virtual time: slower)" for words in scenario.copies.words]
    if scenario.checkpoints:
        tasks = count(len(scenario.checkpoints), "task")
        lines.append(f"{tasks} continue from checkpoints after a loss")
    return [*lines, *failure_words(scenario.failures, scenario.log.machine_nodes)]


def failure_words(failures: Failures, nodes: int) -> Iterator[str]:
    """How often nodes fail, if they do."""
    if failures.log:
        yield f"nodes fail as {failures.log} says, {len(failures.recorded):,} times in all"
    if failures.nodes_s is not None:
        if failures.shape == 1:
            shape = ""
        else:
            shape = f" (Weibull, shape {failures.shape:g})"
        up = format_duration(failures.nodes_s)
        out = format_duration(failures.repair_s)
        some = format_duration((failures.nodes_s + failures.repair_s) / nodes)
        yield (
            f"a node fails after {up} on average{shape} and is repaired after {out}; some node "
            f"fails every {some}"
        )
    if failures.loses:
        yield "other users' jobs that lose a node do not run again"
    if failures.in_shell:
        named = (
            ("an agent", failures.agents_s),
            ("the manager", failures.manager_s),
            ("the queue", failures.queue_s),
        )
        often = [
            f"{what} every {format_duration(mean_s)} on average"
            for what, mean_s in named
            if mean_s is not None
        ]
        if failures.tasks:
            tasks = [f"{failures.tasks:.2g} of all attempts at tasks"]
        else:
            tasks = []
        away = format_duration(failures.away_s)
        yield (
            f"fail: {', '.join(tasks + often)}; manager and queue are then away for {away} (in "
            "virtual time: slower)"
        )


def facts(scenario: Scenario, args: argparse.Namespace) -> dict[str, object]:
    """What is tried, for JSON."""
    rules = ("policy", "priority", "placement", "requests", "cap", "margin", "noise", "seed")
    return {
        "workflow": scenario.workflow.name,
        "tasks": len(scenario.workflow),
        "guessed_run_times": scenario.workflow.guessed_run_times,
        "log": scenario.log.name,
        "nodes": scenario.log.machine_nodes,
        "cores_per_node": scenario.shape.cores,
        "memory_bytes_per_node": scenario.shape.memory_bytes,
        "disk_bytes_per_node": scenario.shape.disk_bytes,
        "resources_per_node": dict(scenario.shape.counts),
        **{name: getattr(scenario, name) for name in rules},
        **({"failures": args.failures} if scenario.failures else {}),
        "log_is_synthetic_default": args.log is None,
    }


def _check_fit(scenario: Scenario) -> None:
    """Refuse a workflow with tasks that no node can hold, in words that name the options."""
    import numpy as np

    from windrow.model.nodes import lacking

    workflow = scenario.workflow
    shape = scenario.shape
    for misfit in np.flatnonzero(~workflow.fits(shape))[:1].tolist():
        task = workflow.task(misfit)
        name, needs, has = lacking(task.need, [shape])
        option = f"--{name} {task.need.amounts()[name]}"
        if name not in ("cores", "memory", "disk", "gpus"):
            option = f"--resource {name}={task.need.amounts()[name]}"
        raise UserError(
            f"task {task.id} of {workflow.name} needs {needs}, and a node has {has}; give "
            f"{option} or more"
        )
    scenario.work  # noqa: B018  (refuses what else fits nowhere, before any trial)
