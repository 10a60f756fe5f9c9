"""`windrow simulate`: replay a log under one or several policies and print what came of it."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from windrow.cli import options, terminal
from windrow.cli.arguments import duration_s, node_count, output_file, positive
from windrow.cli.scenario import TIMES, add_failures, failure_words
from windrow.errors import UserError

if TYPE_CHECKING:
    from windrow.cli.simulate_output import Simulated
    from windrow.model import Log
    from windrow.model.failures import Failures


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add("log LOG", help="a log in the Standard Workload Format (.swf), plain or .gz")
    _add_settings(parser)
    window = options.adder(parser.add_argument_group("which jobs count"))
    words = "count jobs submitted from then on; earlier ones only fill the machine"
    window("--from TIME", duration_s, "0", dest="from_s", help=words)
    window(
        "--to TIME",
        duration_s,
        math.inf,
        dest="to_s",
        help="count jobs submitted before then (default: the end)",
    )
    words = "start this long before --from, with an empty machine (default: start with the log)"
    window("--warmup TIME", duration_s, dest="warmup_s", help=words)
    window(
        "--at TIME",
        duration_s,
        dest="at_s",
        help="instead: the queue at that time of the log, and when each waiting job should start",
    )
    output = parser.add_argument_group("output")
    output.add_argument(
        "--jobs-out",
        type=output_file,
        metavar="FILE",
        help="write each job's times to a .csv, .csv.gz or .parquet file",
    )
    options.add_html(output, "--report")
    options.add_json(output)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    from windrow.sim.settings import EVENTS, PLACEMENTS, POLICIES, PRIORITIES

    tables = {
        "policies": POLICIES,
        "priorities": PRIORITIES,
        "events": EVENTS,
        "placements": PLACEMENTS,
    }
    options.add_listings(parser, tables, TIMES)
    add = options.adder(parser)
    add(
        "--nodes N", node_count, help="number of nodes; wider jobs are dropped (default: the log's)"
    )
    add(
        "--policy P",
        action="append",
        help="see below; repeat it to compare (default: conservative)",
    )
    add("--priority Q", help="order of the queue, see below (default: arrival)")
    words = "requested times as users gave them, or equal to the run times (default: actual)"
    add("--requests", choices=("actual", "accurate"), help=words)
    add("--events E", help="what happens within a second, see below (default: batched)")
    add("--placement L", help="whether nodes have identities, see below (default: count)")
    words = "a .toml file with such rules, and weights of a priority; options here count more"
    add("--rules FILE", help=words)
    add(
        "--cap K",
        positive,
        help="maximum number of jobs of one user queued or running (default: no cap)",
    )
    add_failures(add, "", "seed of the failures")


def run(args: argparse.Namespace) -> None:
    """Read, simulate under each policy, and hand out the results."""
    _fill_in_rules(args)
    policies = list(dict.fromkeys(policy.strip().lower() for policy in args.policy))
    failures = _checked(args, policies)
    if args.at_s is not None:
        if failures:
            raise UserError("--at shows what is known at a moment; leave out --failures")
        _show_queues(args, policies)
        return
    outcome = _simulate_all(args, _read(args), policies, failures)
    window = {"from_s": outcome.from_s, "to_s": outcome.to_s}
    if args.jobs_out:
        from windrow.cli.simulate_output import write_jobs

        write_jobs(args.jobs_out, outcome.simulations, **window)
    if args.html:
        from windrow.report.simulation import simulation_page

        terminal.write_page(
            args.html, simulation_page(outcome.simulations, repairs=outcome.repairs, **window)
        )
    if args.json:
        terminal.print_json(outcome.as_json())
    else:
        terminal.show(
            *outcome.as_blocks(), *terminal.files_written(jobs=args.jobs_out, page=args.html)
        )


_DEFAULTS = {
    "policy": "conservative",
    "priority": "arrival",
    "requests": "actual",
    "events": "batched",
    "placement": "count",
}


def _fill_in_rules(args: argparse.Namespace) -> None:
    """What no option says is as the file has it, or as usual."""
    rules: dict[str, Any] = {}
    if args.rules:
        from windrow.sim.rules_file import read_rules

        rules = read_rules(args.rules)
    for name, value in (_DEFAULTS | rules).items():
        if getattr(args, name) is None:
            setattr(args, name, [value] if name == "policy" else value)


def _show_queues(args: argparse.Namespace, policies: list[str]) -> None:
    """The queue at a moment of the log under each policy, with the starts that waiting jobs are
    told."""
    from windrow.cli.simulate_output import queue_blocks
    from windrow.formats import read_log
    from windrow.sim.replay import queue_at

    given = {"--jobs-out": args.jobs_out, "--report": args.html}
    for option in (option for option, value in given.items() if value):
        raise UserError(f"--at shows one moment; leave out {option}")
    with terminal.waiting(f"reading {args.log}"):
        log = read_log(args.log, nodes=args.nodes)
    rules = {name: getattr(args, name) for name in ("priority", "requests", "events", "placement")}
    found = []
    for policy in policies:
        with terminal.waiting(f"simulating {len(log):,} jobs under {policy}"):
            found.append(queue_at(log, int(args.at_s), policy=policy, cap=args.cap, **rules))
    if args.json:
        terminal.print_json({"log": log.name, "at_s": int(args.at_s), "queues": found})
    else:
        terminal.show(*(block for one in found for block in queue_blocks(one)))


def _checked(args: argparse.Namespace, policies: list[str]) -> Failures:
    """Refuse what cannot work before the log is read; what fails."""
    from windrow.cli.simulate_output import check_suffix
    from windrow.formats.failure_log import read_failures
    from windrow.sim.settings import ClusterSettings

    for policy in policies:
        ClusterSettings(policy, args.priority, args.events, args.placement, args.cap)
    if args.from_s >= args.to_s:
        raise UserError("--from must be before --to; no job would be counted")
    if args.warmup_s is not None and args.from_s == 0:
        raise UserError("--warmup says how long before --from to start; give --from too")
    if args.jobs_out:
        check_suffix(args.jobs_out)
    failures = read_failures(args.failures)
    if failures.in_shell:
        raise UserError(
            "--failures: a log has no tasks, agents or managers; here only nodes can fail"
        )
    return failures


def _read(args: argparse.Namespace) -> Log:
    from windrow.formats import read_log

    with terminal.waiting(f"reading {args.log}"):
        log = read_log(args.log, nodes=args.nodes)
    times_s = log.submit_s - log.submit_s[0]
    if not ((times_s >= args.from_s) & (times_s < args.to_s)).any():
        last = f"the last of {args.log} is submitted {int(times_s[-1]):,} s after the first"
        raise UserError(f"no job is submitted between --from and --to: {last}; widen the window")
    return log


def _simulate_all(
    args: argparse.Namespace, log: Log, policies: list[str], failures: Failures
) -> Simulated:
    from windrow.cli.simulate_output import Simulated
    from windrow.sim import simulate
    from windrow.sim.replay import prepare

    fails: dict[str, str] = {}
    drawn = None
    if failures:
        from windrow.trials.scenario import failing

        fails = {"failures": args.failures, "seed": str(args.seed)}
        drawn = failing(log, failures, args.seed)
    settings = {
        name: getattr(args, name) for name in ("priority", "requests", "events", "placement")
    }
    zero = int(log.submit_s[0])
    if args.warmup_s is None:
        begin_s = 0
    else:
        begin_s = max(0, math.floor(args.from_s - args.warmup_s))
    with terminal.waiting("preparing the simulator, which is compiled once per version"):
        prepare()
    simulations = []
    for policy in policies:
        with terminal.waiting(f"simulating {len(log):,} jobs under {policy}"):
            given = {
                "policy": policy,
                "cap": args.cap,
                "from_s": zero + begin_s,
                "failures": drawn,
                **settings,
            }
            simulations.append(simulate(log, **given))
            simulations[-1].settings.update(fails)
    window = (zero + args.from_s, zero + args.to_s)
    words = tuple(failure_words(failures, log.machine_nodes))
    return Simulated(tuple(simulations), log.repairs, args.cap, *window, words)
