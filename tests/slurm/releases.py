"""Slurms of other releases, from Debian's other suites, beside the one that is installed.

    python -m tests.slurm.releases trixie /var/tmp/windrow-trixie

bootstraps a suite into a folder (as root, with debootstrap; a minute, 600 MB), and then tests with
`WINDROW_TEST_SLURM_RELEASE=/var/tmp/windrow-trixie` use its Slurm.

Rule 1: nothing runs in a chroot: jobs see this machine's files. Each of its programs is a copy that
asks for the loader and the libraries of the suite.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

VARIABLE = "WINDROW_TEST_SLURM_RELEASE"
TOOLS = ("debootstrap", "patchelf")
PACKAGES = "slurm-wlm,slurmdbd,munge"
MIRROR = "http://deb.debian.org/debian"
CLIENTS = ("sacct", "sacctmgr", "sbatch", "sbcast", "scancel", "scontrol", "sdiag", "sinfo", "squeue", "srun")  # fmt: skip # noqa: E501
DAEMONS = ("slurmctld", "slurmd", "slurmdbd", "slurmstepd")
_LIBRARIES = "usr/lib/x86_64-linux-gnu"


def chosen() -> Path | None:
    """The folder of the release that tests are to use; None if it is the installed one."""
    if folder := os.environ.get(VARIABLE):
        return Path(folder)
    return None


def programs(root: Path) -> Path:
    """The folder of commands that start the programs of the release in `root`."""
    return root / "windrow-bin"


def plugins(root: Path) -> Path:
    """Where that Slurm has its plugins."""
    return root / _LIBRARIES / "slurm-wlm"


def bootstrap(suite: str, root: Path) -> None:
    """Make the folder, unless it is there."""
    if programs(root).is_dir():
        return
    if os.getuid() != 0 or not all(map(shutil.which, TOOLS)):
        raise SystemExit(f"releases: needs root and {' and '.join(TOOLS)} (apt-get install)")
    options = ("--variant=minbase", f"--include={PACKAGES}")
    subprocess.run(["debootstrap", *options, suite, root, MIRROR], check=True)
    write_programs(root)


def write_programs(root: Path) -> None:
    """A copy of each program that asks for the suite's loader and libraries by itself.

    A command that calls the loader would not do: the controller starts itself again.
    """
    made = root / "windrow-bin.part"
    made.mkdir(exist_ok=True)
    loader = root / "usr/lib64/ld-linux-x86-64.so.2"
    libraries = f"{root / _LIBRARIES}:{plugins(root)}"
    for name in (*CLIENTS, *DAEMONS):
        # what Debian's alternatives name is looked up on this machine, and is not the release's
        found = [
            root / "usr" / place for place in (f"bin/{name}", f"sbin/{name}-wlm", f"sbin/{name}")
        ]
        program = next(path for path in found if path.exists() and not path.is_symlink())
        copy = shutil.copy(program, made / name)
        how = ("--set-interpreter", loader, "--force-rpath", "--set-rpath", libraries)
        subprocess.run(["patchelf", *how, copy], check=True)
    made.rename(programs(root))


def main(argv: Sequence[str]) -> int:
    """Bootstrap a suite into a folder."""
    if len(argv) != 2:
        print("usage: python -m tests.slurm.releases SUITE FOLDER", file=sys.stderr)
        return 2
    bootstrap(argv[0], Path(argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
