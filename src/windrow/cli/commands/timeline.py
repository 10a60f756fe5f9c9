"""`windrow timeline`: one simulated run of a workflow as a page, task by task, over the cluster's load."""

import argparse

from windrow.cli import options, terminal
from windrow.cli import scenario as shared
from windrow.model import format_duration
from windrow.model.wording import count


def add_arguments(parser: argparse.ArgumentParser) -> None:
    shared.add_meanings(parser)
    shared.add_workflow_and_log(parser)
    shared.add_one_run(parser)
    words = "the page to write; it opens in any browser (default: timeline.html)"
    options.add_html(parser, "-o", "--output", default="timeline.html", words=words)
    shared.add_cluster(parser)


def run(args: argparse.Namespace) -> None:
    """Read, run, draw."""
    from windrow.app.strategies import find_strategy
    from windrow.lab.background import run_with_background
    from windrow.manager.figures import visible_wait_s
    from windrow.report.run.page import run_page

    strategy = find_strategy(args.strategy)
    scenario, at_s = shared.read_one_run(args)
    with terminal.waiting(f"running {scenario.workflow.name}"):
        played, background = run_with_background(scenario, strategy, at_s)
    lines = [*shared.words(scenario, args), f"submitted {format_duration(at_s)} into the log"]
    terminal.write_page(args.html, run_page(played, background, lines))
    done = f"{scenario.workflow.name} by {played.strategy}: done in {format_duration(played.makespan_s)}"
    jobs, visible = count(len(played.story.jobs), "job"), format_duration(visible_wait_s(played))
    print(f"{args.html}: {done}, with {jobs}, {visible} of visible wait")
