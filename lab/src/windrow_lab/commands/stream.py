"""`windrow stream`: a stream of workflows on one pool of processors, under several policies, in one
table."""

import argparse

from windrow.cli import options, terminal
from windrow.cli.arguments import number, seed, whole
from windrow.errors import UserError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from windrow.streams.help_texts import POLICY_FORMS, SELECTION_MEANINGS
    from windrow_lab.stream.help_texts import ESTIMATE_MEANINGS, WORKLOAD_MEANINGS

    tables = {
        "policies": POLICY_FORMS,
        "workloads": WORKLOAD_MEANINGS,
        "selections": SELECTION_MEANINGS,
        "estimates (for due)": ESTIMATE_MEANINGS,
    }
    options.add_listings(parser, tables)
    add = options.adder(parser)
    add("--policy P", action="append", help="see below; may be repeated (default: four of them)")
    add("--workload W", help="see below (default: mixture)")
    words = "a workflow file; may be repeated: they arrive in turn, instead of a workload"
    add("--file WORKFLOW", action="append", help=words)
    words = "they arrive as the jobs of this log do, stretched to the utilization"
    add("--arrivals LOG", help=words)
    load = number(0.001, 2, what="a utilization")
    add("--utilization U", load, 0.5, help="offered load, as a share of the pool")
    add("--nodes N", whole(1, 100_000), 100, help="processors")
    add("--workflows N", whole(1, 100_000), 3000, help="number of workflows")
    add("--jobs F", number(0, 1, what="a share"), "0", help="share of batch jobs")
    add("--selection S", default="random", help="which task of a workflow first, see below")
    add("--estimates E", default="exact", help="estimates of run times, see below")
    add("--seed N", seed, 0, help="seed of the workload and of random choices")
    output = parser.add_argument_group("output")
    options.add_html(output)
    options.add_json(output)


def run(args: argparse.Namespace) -> None:
    """Draw the workload, run every policy on it, and hand out the results."""
    from windrow.formats import read_log, read_workflow
    from windrow_lab.stream import page as stream
    from windrow_lab.stream.comparison import compare_streams

    if args.file and args.workload:
        raise UserError("--file is instead of --workload; leave one out")
    args.workload = args.workload or "mixture"
    own = [read_workflow(path) for path in args.file or ()]
    arrivals = read_log(args.arrivals) if args.arrivals else None
    names = ("workload", "utilization", "workflows", "selection", "estimates", "seed", "jobs")
    settings = {name: getattr(args, name) for name in names}
    with terminal.waiting("simulating"):
        comparison = compare_streams(
            args.policy or ["sr", "slop:0.2", "bf", "due"],
            slots=args.nodes,
            own=own,
            arrivals=arrivals,
            **settings,
        )
    if args.html:
        terminal.write_page(args.html, stream.stream_page(comparison))
    if args.json:
        terminal.print_json(stream.stream_json(comparison))
    else:
        terminal.show(
            terminal.text(*stream.words(comparison)),
            terminal.table(list(stream.head(comparison)), stream.rows(comparison)),
            terminal.text(*stream.summary(comparison)),
            *terminal.files_written(page=args.html),
        )
