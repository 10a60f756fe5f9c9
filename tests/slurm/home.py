"""Where the ordinary user of a private Slurm works, and how that user starts programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.other_user import as_nobody, python_for_all, python_path
from tests.real.works import private
from tests.slurm.cluster import SlurmCluster
from tests.slurm.shared import USER
from tests.slurm.test_slurm_sites import copy_compiled

REFUSAL = "Requested node configuration is not available"


def refusing(folder: Path, path: str) -> dict[str, str]:
    """Variables with which Slurm says that a job could run, and takes none, as sites' own filters
    do. `path`: where its programs are."""
    programs = folder / "programs"
    programs.mkdir()
    real = shutil.which("sbatch", path=path)
    (programs / "sbatch").write_text(
        f'#!/bin/sh\ncase "$*" in *--test-only*) exec {real} "$@";; esac\n'
        f'echo "sbatch: error: Batch job submission failed: {REFUSAL}" >&2; exit 1\n'
    )
    (programs / "sbatch").chmod(0o755)
    return {"PATH": f"{programs}:{path}"}


@dataclass(frozen=True)
class Home:
    """Where the ordinary user has what is compiled, and how that user starts the command."""

    folder: Path
    python: str
    before: tuple[str, ...] = ()

    @property
    def windrow(self) -> tuple[str, ...]:
        """The command."""
        return (*self.before, self.python, "-P", "-m", "windrow.cli.main")

    def room(self) -> Path:
        """An empty folder of that user."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        self.give(folder)
        return folder

    def give(self, folder: Path) -> None:
        """Make all that is in the folder that user's."""
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", USER, folder], check=True)

    def environment(self, slurm: SlurmCluster, folder: Path) -> dict[str, str]:
        """Of programs of that user in this folder, which have this Slurm."""
        env = {**slurm.env, **python_path(), **private(folder), "HOME": str(folder), "USER": USER}
        return {**env, "WINDROW_CACHE": str(self.folder / "cache")}

    def run(
        self,
        slurm: SlurmCluster,
        folder: Path,
        *words: str,
        more: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run Python with these words in a folder, as that user. `more`: variables."""
        self.give(folder)
        return subprocess.run(
            [*self.before, self.python, *words],
            cwd=folder,
            env={**self.environment(slurm, folder), **(more or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=3000,
        )


@contextmanager
def made() -> Iterator[Home]:
    """In /tmp, since another user may not look into folders of pytest."""
    folder = Path(tempfile.mkdtemp(prefix="windrow-home-", dir="/tmp"))
    try:
        folder.chmod(0o755)
        copy_compiled(folder / "cache")
        home = Home(folder, sys.executable)
        if os.getuid() == 0:
            home = Home(folder, python_for_all(os.environ), tuple(as_nobody()))
        home.give(folder)
        yield home
    finally:
        shutil.rmtree(folder)
