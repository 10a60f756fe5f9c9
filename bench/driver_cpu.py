"""Runs a command, and writes how much CPU time it and all that it has started took, processes that
have left it included.

    python driver_cpu.py FILE COMMAND ...
"""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36


def main(file: Path, command: list[str]) -> int:
    """Its exit code, when nothing that it has started is left."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        return 70
    first = subprocess.Popen(command).pid
    code = 0
    while True:
        try:
            pid, status = os.wait()
        except ChildProcessError:
            break
        if pid == first:
            code = os.waitstatus_to_exitcode(status)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    file.write_text(f"{used.ru_utime + used.ru_stime}\n")
    return code


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
