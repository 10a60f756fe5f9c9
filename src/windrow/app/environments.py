"""Environments of tasks that have to be made before a run: venvs and conda environments, each named
after what the file says of which it is made.

Law: one process makes an environment, others wait for it; it counts as made when its mark is there,
and what was half made is made from the beginning.
"""

import fcntl
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from shutil import which

from windrow.deletion import discard_tree
from windrow.errors import UserError
from windrow.files import disk_faults
from windrow.model.runnable import Made, Step

_MARK = ".windrow-made"
_SHOWN = 12


def make_environments(steps: Iterable[Step], say: Callable[[str], None]) -> None:
    """Make what is not there yet. UserError if one cannot be made, with the last lines of what its
    program said."""
    for made in dict.fromkeys(step.made for step in steps if step.made is not None):
        if (Path(made.path) / _MARK).exists():
            continue
        with disk_faults(f"{made.path} cannot be created"):
            Path(made.path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(f"{made.path}.lock", "w") as lock:  # noqa: PTH123
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not (Path(made.path) / _MARK).exists():
                    say(f"making an environment ({made.kind}) of {made.source}")
                    _make(made)


def _make(made: Made) -> None:
    folder = Path(made.path)
    if folder.exists():
        discard_tree(folder)
    if made.kind == "venv":
        _call(made, [sys.executable, "-m", "venv", made.path])
        _call(made, [f"{made.path}/bin/python", "-m", "pip", "install", "-q", "-r", made.source])
    else:
        tools = [tool for tool in ("conda", "mamba", "micromamba") if which(tool)]
        if not tools:
            raise UserError(
                f"{made.source} asks for a conda environment, and there is no conda, mamba or "
                "micromamba on this machine; install one, or name an environment that exists"
            )
        _call(made, [tools[0], "env", "create", "-y", "-q", "-p", made.path, "-f", made.source])
    (folder / _MARK).touch()


def _call(made: Made, words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-_SHOWN:])
        raise UserError(
            f"the environment of {made.source} cannot be created ({words[0]} ended with "
            f"{done.returncode}); correct the file, then try again. It said:\n{last}"
        )
