"""Running a peer: in a process of its own, with a time limit; AccaSim in an environment of its own
as well.

AccaSim asks for nothing that disturbs, but a benchmark has no business adding to the environment
that is being timed. Its plotting needs matplotlib and scipy; its simulator does not, so they are
left out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ACCASIM_PACKAGES = ("accasim==1.1.3", "sortedcontainers==2.4.0", "psutil>=5.9")


class PeerMissingError(Exception):
    """The peer cannot be run here; the message says why."""


class TooSlowError(Exception):
    """The peer did not finish within its limit."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a peer printed."""

    wall_s: float
    jobs: int
    mean_wait_s: float
    version: str


def accasim_python(cache: Path = HERE / ".peers") -> str:
    """The interpreter of an environment that has AccaSim; made on first use. PeerMissingError where
    that fails."""
    folder = cache / f"accasim-1.1.3-py{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    ready = folder / "ready"
    if not ready.exists():
        install = (
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--retries=1",
            "--no-deps",
        )
        try:
            venv.create(folder, clear=True, with_pip=True)
            subprocess.run(
                [python, *install, *ACCASIM_PACKAGES], check=True, capture_output=True, timeout=180
            )
        except subprocess.CalledProcessError as error:
            raise PeerMissingError(
                f"it could not be installed: {_last_line(error.stderr)}"
            ) from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise PeerMissingError(f"it could not be installed: {error}") from None
        ready.touch()
    return str(python)


def ask(command: Sequence[str], *, limit_s: float, waiting: Callable[[float], None]) -> Answer:
    """Run a peer's script and return what it printed, as `told`."""
    return Answer(**json.loads(told(command, limit_s=limit_s, waiting=waiting)))


def told(command: Sequence[str], *, limit_s: float, waiting: Callable[[float], None]) -> str:
    """The last line that a peer's script printed. `waiting` is told now and then how long the limit
    still is.

    TooSlowError past the limit; PeerMissingError where the peer failed.
    """
    begin = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        left_s = limit_s
        while True:
            try:
                out, err = process.communicate(timeout=max(0.1, min(5.0, left_s)))
                break
            except subprocess.TimeoutExpired:
                left_s = limit_s - (time.perf_counter() - begin)
                if left_s <= 0:
                    process.kill()
                    raise TooSlowError from None
                waiting(left_s)
    if process.returncode:
        raise PeerMissingError(f"it failed: {_last_line(err)}")
    return out.splitlines()[-1]


def _last_line(text: str | bytes | None) -> str:
    lines = (
        (text.decode(errors="replace") if isinstance(text, bytes) else text or "")
        .strip()
        .splitlines()
    )
    return lines[-1] if lines else "without a message"
