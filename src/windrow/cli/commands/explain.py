"""`windrow explain`: why a task or a job is where it is."""

import argparse
import time

from windrow.cli import options, terminal
from windrow.errors import UserError, printable


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", metavar="TASK|JOB", help="a task's id, a job's number, or its id in the queue")
    options.add_of_run(parser)
    parser.add_argument("--all", action="store_true", help="show everything, such as the alternatives considered")
    options.add_json(parser, "instead of text")


def run(args: argparse.Namespace) -> None:
    """Find it and explain it."""
    from windrow.manager.waiting import nothing_can_start
    from windrow.report.run import explanation

    told = options.run_of(args).recorded(time.time())
    story, workflow = told.story, told.story.workflow
    # Numbers win: the local queue counts from 1, so that its `1` is the id of job 0.
    jobs = {job.id: n for n, job in story.jobs.items() if job.id} | {str(number): number for number in story.jobs}
    if args.what in workflow.ids:
        short = explanation.answer_task(told, workflow.number(args.what))
        lines = explanation.explain_task(told, workflow.number(args.what))
        if (home := story.tasks[workflow.number(args.what)].job) is not None:
            lines += explanation.explain_job(told, home)
    elif args.what in jobs:
        short = explanation.answer_job(told, jobs[args.what])
        lines = explanation.explain_job(told, jobs[args.what])
    else:
        hint = "windrow tasks lists the tasks, windrow status the jobs"
        raise UserError(f"{told.name} has no task or job {args.what[:80]!r}; {hint}")
    if warning := nothing_can_start(story):
        lines.append(f"warning: {warning}")
        short = [*short[: explanation.LINES_MAX - 1], lines[-1]]
    if args.json:
        terminal.print_json({"run": told.name, "what": args.what, "answer": short, "lines": lines})
        return
    print(printable("\n".join(lines if args.all else short)))
    if not args.all and len(lines) > len(short):
        terminal.say("for details: --all")
