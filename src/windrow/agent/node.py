"""`python -m windrow.agent.node`: executes orders on a node of the allocation other than the first.

Orders come as lines on standard input, results go as lines to standard output. When the input ends,
so does it, and with it all tasks that still run. With `--notices` a SIGTERM is passed on as the
word that the node will be taken away, and the work continues until then. With `--bound` it stays on
the cores that the step was given: others have the rest of the machine. With `--data RUN_DIR JOB
PLACE` the node uses its own disk for that job.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
from typing import TYPE_CHECKING, Any

from windrow.agent.folder import RunFolder
from windrow.agent.guard import guarded
from windrow.agent.job_file import read_job
from windrow.agent.order import order_from, to_line
from windrow.agent.remote import let_end
from windrow.agent.runner import Runner
from windrow.agent.signals import Wake
from windrow.errors import OutsideError
from windrow.model.attempt import Attempt

if TYPE_CHECKING:
    from windrow.agent.data.node_data import NodeData

_KILL_AFTER_S = 2.0


def _data(run: str, job: str, facing: str, place: str) -> NodeData | None:
    """What this node has of a job's files on its own disk."""
    from windrow.agent.data.node_data import NodeData, plan_of  # noqa: PLC0415  (few jobs have such data)

    folder = RunFolder.at(run)
    plan = plan_of(folder, read_job(folder.job_file(int(job))), int(place), facing)
    return None if plan is None else NodeData(plan)


def main() -> int:
    """Serve until the input ends or a signal says stop."""
    if "--bound" not in sys.argv:
        _unbind()
    wake = Wake()
    runner = Runner(os.environ)
    try:
        if "--data" in sys.argv:
            runner.data = _data(*sys.argv[sys.argv.index("--data") + 1 :][:4])
        _serve(wake, runner, passes_on="--notices" in sys.argv[1:])
    except OutsideError as error:
        _say(json.dumps({"broken": str(error)}).encode() + b"\n")
    finally:
        _stop(wake, runner)
    return 0


def _unbind() -> None:
    """Undo a binding to some cores that the step may have got; what the job may not use stays out
    of reach."""
    with contextlib.suppress(
        AttributeError, OSError
    ):  # not every system has it, and it is not vital
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def _serve(wake: Wake, runner: Runner, *, passes_on: bool) -> None:
    unread = b""
    has_told = False
    os.set_blocking(0, False)
    while wake.stop_signal is None or passes_on:
        carrier = [] if runner.data is None else [runner.data.fd]
        readable, _, _ = select.select([0, wake.fd, *carrier], [], [], runner.look_again_s())
        if 0 in readable:
            data = os.read(0, 1 << 16)
            if not data:
                return
            *lines, unread = (unread + data).split(b"\n")
            for record in map(json.loads, lines):
                _obey(runner, record)
        wake.clear()
        results = runner.collect()
        if wake.stop_signal is not None and not has_told:
            has_told = True
            _say(b'{"notice": true}\n')  # before the results of tasks that it may have ended
        for result in results:
            _say(to_line(result))
        _pass_on(runner)


def _obey(runner: Runner, record: dict[str, Any]) -> None:
    """One line of what the agent says to this node."""
    if "signal" in record:
        runner.signal(record["signal"], record["tasks"])
    elif "asked" in record:
        runner.ask(record["asked"])
    elif "to_commit" in record:
        runner.commit(record["to_commit"])
    elif "place" in record:
        runner.hear(record["place"], record["what"])
    elif "to_drop" in record:
        runner.drop(record["to_drop"])
    else:
        runner.start(order_from(record))


def _pass_on(runner: Runner) -> None:
    """What its files have to say."""
    if runner.said:
        _say(json.dumps({"said": runner.said}).encode() + b"\n")
        runner.said.clear()
    if committed := runner.take_committed():
        _say(json.dumps({"committed": committed}).encode() + b"\n")


def _stop(wake: Wake, runner: Runner) -> None:
    """End what runs. Only successes are told: the agent records the rest as lost with this node,
    not as failed."""

    def wait(pause_s: float) -> None:
        select.select([wake.fd], [], [], pause_s)
        wake.clear()

    let_end([runner], _KILL_AFTER_S, wait, _say_success)
    for result in runner.end():
        _say_success(result)


def _say_success(result: Attempt) -> None:
    if not result.why:
        _say(to_line(result))


def _say(line: bytes) -> None:
    while line:
        line = line[os.write(1, line) :]


if __name__ == "__main__":
    sys.exit(guarded(main))
