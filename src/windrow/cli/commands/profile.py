"""`windrow profile`: what a command, or tasks of a workflow, do to files."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.cli import options, terminal
from windrow.cli.arguments import number, output_file
from windrow.errors import UserError, unknown_name

if TYPE_CHECKING:
    from windrow.profile.stored import Profile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = options.adder(parser)
    add(
        "words WHAT",
        nargs="+",
        help="a command, after --; `show` and a profile; or a workflow, with --tasks",
    )
    add(
        "--detail HOW",
        choices=("bytes", "files"),
        help="bytes (strace) or files (default: bytes if strace works)",
    )
    words = (
        "trace another instance, with these in place of the last arguments of COMMAND; may "
        "be repeated"
    )
    add("--again ARGS", action="append", default=[], help=words)
    add(
        "--tasks A,B",
        help="tasks of the workflow to run here, in order, and to trace; their inputs must exist",
    )
    add(
        "-o --output FILE",
        output_file,
        help="where to write the profile (default: the program's name with .profile)",
    )
    add(
        "--into WORKFLOW",
        output_file,
        help="write sizes and roles found into the files of this native workflow",
    )
    speed = number(1, 1e9, what="a speed")
    add(
        "--cpu-speed MIPS",
        speed,
        2000.0,
        help="millions of instructions per second, to convert instructions to time",
    )
    add("--parquet FILE", output_file, help="write the trace, one row for each operation")
    options.add_html(parser)
    options.add_json(parser, "instead of tables")


def _file_of(name: str) -> str:
    if os.path.exists(name):  # noqa: PTH110  (any name)
        return name
    return f"{name.removesuffix('.profile')}.profile"


def run(args: argparse.Namespace) -> int:
    """Trace or read, then tell."""
    from windrow.formats.parquet import need_parquet
    from windrow.profile.stored import read_profile, write_profile

    if args.parquet:
        need_parquet("--parquet")
    output = None
    if args.words[0] == "show" and len(args.words) == 2 and not args.tasks:
        profile = read_profile(_file_of(args.words[1]))
    else:
        profile = _traced_tasks(args) if args.tasks else _traced_command(args)
        output = args.output or f"{profile.trace.stages[0].name}.profile"
        write_profile(profile, output)
    _tell(args, profile, output)
    failed = [stage for stage in profile.trace.stages if stage.exit_code]
    for stage in failed:
        terminal.say(
            f"windrow: warning: {stage.name} ended with exit code {stage.exit_code}; this is "
            "what it did"
        )
    return bool(failed)


def _tell(args: argparse.Namespace, profile: Profile, output: str | None) -> None:
    from windrow.formats.native.merging import with_files
    from windrow.profile.summary import summary
    from windrow.report.traffic import blocks, traffic_page

    with terminal.waiting("analysing the trace"):
        told = summary(*profile.analysed(), args.cpu_speed)
    if args.html:
        title = f"Profile of {profile.trace.stages[0].name}"
        lead = (
            f"{sum(total['operations'] for total in told['totals']):,} operations, traced in "
            f"{profile.folder}"
        )
        terminal.write_page(args.html, traffic_page(title, told, lead))
    if args.parquet:
        _write_rows(profile, args.parquet)
    if args.into:
        known = {
            file["path"]: (file["static_bytes"], "" if file["is_guess"] else file["role"])
            for file in told["files"]
        }
        terminal.write_page(args.into, with_files(args.into, known))
    if args.json:
        terminal.print_json({**told, "profile": output})
        return
    tables = [
        part
        for b in blocks(told)
        for part in (terminal.heading(b.title), b.words, terminal.table(b.head, b.rows))
    ]
    words = terminal.text(*told["verdicts"], *(f"warning: {line}" for line in told["warnings"]))
    written = terminal.files_written(
        profile=output, page=args.html, rows=args.parquet, sizes=args.into
    )
    terminal.show(*tables, words, *written)


def _traced_command(args: argparse.Namespace) -> Profile:
    from windrow.model.trace import Stage

    command = args.words
    commands = [tuple(args.words)]
    for again in args.again:
        others = shlex.split(again)
        if not 0 < len(others) < len(command):
            most = len(command) - 1
            raise UserError(
                f"--again {again}: give 1 to {most} arguments, to replace the last ones of the "
                "command"
            )
        commands.append((*command[: -len(others)], *others))
    name = Path(command[0]).name
    return _traced(
        args, [(Stage(name, i, command=each), ".", None) for i, each in enumerate(commands)], {}
    )


def _traced_tasks(args: argparse.Namespace) -> Profile:
    """Tasks that depend on each other are stages of one pipeline, others are pipelines of their
    own."""
    from windrow.formats import read_runnable
    from windrow.model.trace import Stage
    from windrow.model.workflow import whole_path
    from windrow.storage.roles import roles

    if len(args.words) > 1 or args.again:
        raise UserError(
            "--tasks goes with one workflow, and without --again: name further tasks instead"
        )
    runnable = read_runnable(args.words[0])
    workflow = runnable.workflow
    steps = runnable.steps
    pipeline = dict[int, int]()
    names = [name.strip() for name in args.tasks.split(",")]
    for name in names:
        if name not in workflow.ids:
            raise unknown_name("task", name, workflow.ids[:20])
    for task in sorted(map(workflow.number, names), key=workflow.order.tolist().index):
        before = [
            pipeline[parent] for parent in workflow.parents.of(task).tolist() if parent in pipeline
        ]
        pipeline[task] = before[0] if before else len(set(pipeline.values()))
    work = [
        (
            Stage(workflow.ids[t], pipeline[t], command=steps[t].command),
            steps[t].workdir,
            os.environ | dict(steps[t].env),
        )
        for t in sorted(pipeline, key=lambda task: pipeline[task])
    ]
    paths = [os.path.realpath(whole_path(work[0][1], file.id)) for file in workflow.files]
    return _traced(args, work, dict(zip(paths, roles(workflow)[0], strict=True)))


def _traced(
    args: argparse.Namespace, work: list[tuple[Any, str, Any]], declared: dict[str, str]
) -> Profile:
    from windrow.model.trace import MAP_READ
    from windrow.model.wording import count
    from windrow.profile.stored import Profile
    from windrow.profile.tracers import Tracing, chosen_detail

    tracing = Tracing(chosen_detail(args.detail), terminal.waiting)
    for stage, folder, env in work:
        terminal.say(f"windrow: tracing {stage.name} ({tracing.detail})")
        tracing.run(stage, folder, env, 2 if args.json else None)
    notes = [
        f"uses {what}, whose reads and writes cannot be traced"
        for what in sorted(tracing.reading.unseen)
    ]
    if apart := tracing.reading.apart_bytes:
        notes.append(
            f"{apart:,} bytes went through pipes, terminals and devices, and are not counted"
        )
    trace = tracing.trace()
    if tracing.detail == "bytes" and (mapped := set(trace.file[trace.op >= MAP_READ].tolist())):
        notes.append(
            f"of {count(len(mapped), 'file')} mapped into memory, the whole ranges mapped count "
            "as read"
        )
    return Profile(trace, os.path.realpath(work[0][1]), declared, notes)


def _write_rows(profile: Profile, path: str) -> None:
    import pyarrow.parquet

    from windrow.formats.disk import replace_bytes
    from windrow.model.trace import COLUMNS

    columns: dict[str, Any] = {
        name: getattr(profile.trace, name) for name in ("time_s", "stage", *COLUMNS)
    }
    paths = [*profile.trace.files.paths, None]  # -1 is none
    columns["path"] = pyarrow.array(
        [paths[max(n, -1)] for n in columns["file"].tolist()]
    ).dictionary_encode()
    with replace_bytes(path) as stream:
        pyarrow.parquet.write_table(pyarrow.table(columns), stream)
