"""`python -m windrow.agent RUN_DIR JOB_NUMBER`: the command of every job that the manager
submits."""

from __future__ import annotations

import os
import sys
import time
from socket import gethostname

from windrow.agent.event_file import AgentLeft, Writer
from windrow.agent.folder import RunFolder
from windrow.agent.guard import guarded
from windrow.agent.hosts import find_hosts, queue_id
from windrow.agent.loop import Loop, taken_up
from windrow.agent.signals import Wake
from windrow.errors import OutsideError, UserError, WindrowError
from windrow.model.attempt import Leave, Leaving


def main(arguments: list[str]) -> int:
    """Run the job; the exit code."""
    try:
        if len(arguments) != 2 or not arguments[1].isdecimal():
            raise UserError("usage: python -m windrow.agent RUN_DIR JOB_NUMBER")
        return _run(RunFolder.at(arguments[0]), int(arguments[1]))
    except WindrowError as error:
        print(f"windrow agent: {error}", file=sys.stderr)
        return error.exit_code


def _run(folder: RunFolder, number: int) -> int:
    wake = Wake()
    job = taken_up(folder, number, gethostname(), queue_id(os.environ), time.time())
    if isinstance(job, str):
        print(f"{job}; nothing to do here", file=sys.stderr)
        return 0
    writer = Writer(folder.events(number))
    try:
        hosts = find_hosts(job.nodes, os.environ, job.cores if job.has_parts else 0)
        folder.make(number)
    except (WindrowError, OSError) as error:
        writer.add(AgentLeft(time.time(), Leaving(Leave.TROUBLE, str(error))))
        writer.close()
        if isinstance(error, OSError):
            raise OutsideError(f"{folder.out} cannot be created: {error.strerror}") from error
        raise
    return Loop(folder, job, hosts, writer, wake).run()


if __name__ == "__main__":
    sys.exit(guarded(lambda: main(sys.argv[1:])))
