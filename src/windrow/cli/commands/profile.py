"""`windrow profile`: what a command, or tasks of a workflow, do to files."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.cli import options, terminal
from windrow.cli.arguments import number, place
from windrow.errors import UserError

if TYPE_CHECKING:
    from windrow.profile.stored import Profile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = options.adder(parser)
    words = "a command, after --; `show` and a profile; or a workflow, with --tasks"
    parser.add_argument("words", nargs="+", metavar="WHAT", help=words)
    add("--detail HOW", choices=("bytes", "files"), help="bytes (strace) or files (default: bytes where strace works)")
    words = "trace a second instance: these arguments in place of as many last ones of COMMAND; may be repeated"
    add("--again ARGS", action="append", help=words)
    add("--tasks A,B", help="tasks of the workflow to run and trace, here, in order; their inputs must exist")
    add("-o --output FILE", place, help="where to write the profile (default: the program's name with .profile)")
    add("--into WORKFLOW", place, help="write sizes and roles found into the files of this native workflow")
    speed = number(1, 1e9, what="a speed")
    add("--cpu-speed MIPS", speed, 2000.0, help="instructions become time by this, in millions a second")
    add("--parquet FILE", place, help="write the trace, one row for each operation")
    options.add_html(parser)
    options.add_json(parser, "instead of tables")


def run(args: argparse.Namespace) -> int:
    """Trace or read, then tell."""
    from windrow.formats.parquet import need_parquet
    from windrow.profile.stored import read_profile, write_profile

    if args.parquet:
        need_parquet("--parquet")
    if args.words[0] == "show" and not args.tasks and len(args.words) == 2:
        profile, output = read_profile(args.words[1]), None
    else:
        profile = _traced_tasks(args) if args.tasks else _traced_command(args)
        output = args.output or f"{Path(profile.trace.stages[0].name).name}.profile"
        write_profile(profile, output)
    failed = [stage for stage in profile.trace.stages if stage.exit_code]
    _tell(args, profile, output)
    for stage in failed:
        terminal.say(
            f"windrow: warning: {stage.name} ended with exit code {stage.exit_code}; this is what it did until then"
        )
    return 1 if failed else 0


def _tell(args: argparse.Namespace, profile: Profile, output: str | None) -> None:
    from windrow.profile.summary import summary
    from windrow.report.traffic import blocks, traffic_page

    with terminal.waiting("analysing the trace"):
        measures, roles = profile.analysed()
        told = summary(measures, roles, args.cpu_speed)
    name = profile.trace.stages[0].name
    if args.html:
        lead = f"{len(profile.trace):,} operations, traced in {profile.folder}"
        terminal.write_page(args.html, traffic_page(f"Profile of {name}", told, lead))
    if args.parquet:
        _write_rows(profile, args.parquet)
    merged = _merge(args.into, told) if args.into else None
    if args.json:
        terminal.print_json({**told, "profile": output})
        return
    shown = [
        part for b in blocks(told) for part in (terminal.heading(b.title), b.words, terminal.table(b.head, b.rows))
    ]
    words = [terminal.text(*told["verdicts"], *(f"warning: {line}" for line in told["warnings"]))]
    terminal.show(
        *shown, *words, *terminal.files_written(profile=output, page=args.html, rows=args.parquet, sizes=merged)
    )


def _traced_command(args: argparse.Namespace) -> Profile:
    from windrow.model.trace import Stage

    command = tuple(args.words)
    commands = [command]
    for again in args.again or ():
        others = shlex.split(again)
        if not 0 < len(others) < len(command):
            raise UserError(
                f"--again {again}: give one to {len(command) - 1} arguments, to stand for the command's last ones"
            )
        commands.append((*command[: -len(others)], *others))
    stages = [Stage(Path(command[0]).name, number, command=each) for number, each in enumerate(commands)]
    return _traced(args, [(stage, ".", None) for stage in stages], {})


def _traced_tasks(args: argparse.Namespace) -> Profile:
    """Tasks that depend on each other are stages of one pipeline, others are pipelines of their own."""
    from windrow.errors import unknown_name
    from windrow.formats import read_runnable
    from windrow.model.trace import Stage
    from windrow.model.workflow import whole_path
    from windrow.storage.roles import roles

    if len(args.words) > 1 or args.again:
        raise UserError("--tasks goes with one workflow, and without --again: name further tasks instead")
    runnable = read_runnable(args.words[0])
    workflow = runnable.workflow
    names = [name.strip() for name in args.tasks.split(",")]
    for name in names:
        if name not in workflow.ids:
            raise unknown_name("task", name, workflow.ids[:20])
    wanted = sorted(map(workflow.number, names), key=workflow.order.tolist().index)
    pipeline: dict[int, int] = {}
    for task in wanted:
        of_parents = [pipeline[p] for p in workflow.parents.of(task).tolist() if p in pipeline]
        pipeline[task] = of_parents[0] if of_parents else len(set(pipeline.values()))
    found, _ = roles(workflow)
    folder = runnable.steps[wanted[0]].workdir
    declared = {whole_path(folder, file.id): str(role) for file, role in zip(workflow.files, found, strict=True)}
    work = []
    for task in sorted(wanted, key=lambda task: pipeline[task]):
        step = runnable.steps[task]
        work.append(
            (Stage(workflow.ids[task], pipeline[task], command=step.command), step.workdir, os.environ | dict(step.env))
        )
    profile = _traced(args, work, declared)
    profile.notes += _undeclared(profile, {os.path.realpath(path) for path in declared})
    return profile


def _traced(args: argparse.Namespace, work: list[tuple[Any, str, Any]], declared: dict[str, str]) -> Profile:
    from windrow.profile.stored import Profile
    from windrow.profile.tracers import Tracing, chosen_detail

    tracing = Tracing(chosen_detail(args.detail))
    for stage, folder, env in work:
        terminal.say(f"windrow: tracing {stage.name} ({tracing.detail})")
        tracing.run(stage, folder, env, 2 if args.json else None)
    notes = [f"uses {what}, whose reads and writes cannot be traced" for what in sorted(tracing.reading.unseen)]
    if apart := sum(tracing.reading.apart.values()):
        notes.append(f"{apart:,} bytes went through pipes, terminals and devices, and are not counted")
    return Profile(
        tracing.trace(), os.path.realpath(work[0][1]), {os.path.realpath(p): r for p, r in declared.items()}, notes
    )


def _undeclared(profile: Profile, declared: set[str]) -> list[str]:
    """Files of the workflow's folder that tasks use and the workflow does not name."""
    measures, _ = profile.analysed()
    files, found = profile.trace.files, []
    for file, stage, is_write in sorted(
        {*zip(measures.file.tolist(), measures.stage.tolist(), measures.is_write.tolist(), strict=True)}
    ):
        path = files.paths[file]
        if path not in declared and path.startswith(f"{profile.folder}/") and not files.gone[file]:
            way = "writes" if is_write else "reads"
            found.append(f"{profile.trace.stages[stage].name} {way} {path}, which is not declared")
    return found


def _write_rows(profile: Profile, path: str) -> None:
    import pyarrow
    import pyarrow.parquet

    from windrow.formats.disk import replace_bytes
    from windrow.model.trace import COLUMNS

    trace = profile.trace
    paths = pyarrow.array([trace.files.paths[n] if n >= 0 else None for n in trace.file.tolist()]).dictionary_encode()
    columns = {name: getattr(trace, name) for name in ("time_s", "stage", *COLUMNS)}
    with replace_bytes(path) as stream:
        pyarrow.parquet.write_table(pyarrow.table({**columns, "path": paths}), stream)


def _merge(path: str, told: dict[str, Any]) -> str:
    """Sizes and roles of files, into the workflow that names them."""
    from windrow.formats.native.merging import with_files

    found = {
        file["path"]: (file["static_bytes"], "" if file["is_guess"] else str(file["role"])) for file in told["files"]
    }
    terminal.write_page(path, with_files(path, found))
    return path
