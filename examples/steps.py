"""A program that can be ended at any time: it continues from its last checkpoint when it is started
again.

    python steps.py OUTPUT STEPS SECONDS_PER_STEP

It works in steps, and keeps how far it has come in `state-NAME`, where NAME is that of its output.
When it gets SIGUSR1 it writes that file, after the step that it is at. See
`examples/checkpoints.yaml`.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from pathlib import Path

asked = False


def ask(_number: int, _frame: object) -> None:
    """Only remember it: a handler may run in the midst of anything."""
    global asked  # noqa: PLW0603
    asked = True


def save(state: Path, step: int, value: str) -> None:
    """Write a checkpoint whole or not at all: into another file first, which then takes the place
    of the old one."""
    draft = Path(f"{state}.new")
    with draft.open("w") as file:
        file.write(f"{step} {value}")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(state)


def main(output: str, steps: int, step_s: float) -> None:
    """Hash again and again, as slowly as wanted."""
    global asked  # noqa: PLW0603
    signal.signal(signal.SIGUSR1, ask)
    name = Path(output).name
    state = Path(f"state-{name}")
    step, value = 0, name
    if state.exists():
        text, value = state.read_text().split()
        step = int(text)
    print(f"attempt {os.environ.get('WINDROW_ATTEMPT', '1')} starts at step {step}", flush=True)
    while step < steps:
        time.sleep(step_s)
        step, value = step + 1, hashlib.sha256(value.encode()).hexdigest()
        if asked:
            save(state, step, value)
            asked = False
    Path(output).write_text(f"{value}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
