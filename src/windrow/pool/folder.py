"""Where things are in a pool's folder, and how those who submit and the server meet there. Private
to the user (0700).

`workflows/N.json` is the workflow of number N, written once by the process that submitted it: the
file is made whole under another name and then linked to the next free number, which only one
process can do. So a submission is safe on disk when its number is known, whether the pool is served
or not, and numbers have no gaps. `wishes/` holds an empty file for each wish that the server has
not fulfilled: `stop`, `cancel-N`. A process that has left something there knocks at the pipe
`wake`, as at the door of the local queue; from other machines, if a pipe does not reach, the
server's next look must do. All else has one writer, the server.
"""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from windrow.deletion import discard
from windrow.errors import UserError, unknown_name
from windrow.files import Inside, disk_faults, draft_beside, link_once, sync_folder
from windrow.model import Runnable
from windrow.places import project_folder
from windrow.queues.local.rendezvous import knock
from windrow.records.runnable_file import read_submission, runnable_json

_POOLS = "pools"
_OWN = ("lock", "out", "server.log", "wake", "wishes", "workflows")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


@dataclass(frozen=True, slots=True)
class PoolFolder:
    """A pool's folder. `path` is absolute, since running tasks changes the working folder."""

    path: Path

    @property
    def name(self) -> str:
        """What the pool is called."""
        return self.path.name

    journal = Inside("journal.sqlite")
    """Every event."""
    lock = Inside("lock")
    """Held by the server."""
    log = Inside("server.log")
    """What a detached server says."""
    workflows = Inside("workflows")
    """One file for each workflow, by number."""
    wishes = Inside("wishes")
    """What is asked of the server."""

    def workflow(self, number: int) -> Path:
        """The workflow of this number."""
        return self.workflows / f"{number}.json"

    def out(self, number: int) -> Path:
        """What the tasks of a workflow print, one file for each attempt: TASK.ATTEMPT."""
        return self.path / "out" / str(number)

    def make_out(self, number: int) -> None:
        """The folder for what tasks of a workflow print."""
        out = self.out(number)
        with disk_faults(f"{out} cannot be created"):
            out.mkdir(mode=0o700, parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        """How commands typed in this folder name the pool: by its name, or by its path."""
        if self.path.parent == own_root().absolute():
            return self.name
        return str(self.path)

    def _refuse_foreign_files(self) -> None:
        """A folder that others use must not be closed to them, nor filled with what is ours."""
        for name in sorted(p.name for p in self.path.iterdir()):
            if name not in _OWN and not name.startswith(self.journal.name):
                fix = "name a folder that does not exist"
                raise UserError(f"{self.path} is not a pool: it contains {name}; {fix}")

    def make(self) -> None:
        """Make what is missing. UserError in a folder of something else, OutsideError if it
        cannot be done."""
        with disk_faults(f"{self.path}: cannot create a folder for the pool"):
            if not self.journal.exists() and self.path.is_dir():
                self._refuse_foreign_files()
            # one by one: parents' parents are not private
            for folder in (self.path.parent.parent, self.path.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.path, self.workflows, self.wishes, self.path / "out"):
                folder.mkdir(mode=0o700, exist_ok=True)
            self.path.chmod(0o700)

    def submit(self, runnable: Runnable) -> int:
        """Put the workflow in; its number. When this returns the workflow is on disk and will be
        served."""
        data = runnable_json(runnable, time.time())
        with disk_faults(f"{self.workflows}: cannot be written"):
            with draft_beside(self.workflows / "new") as draft:
                with draft.open("xb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                number = (
                    max(
                        (int(p.stem) for p in self.workflows.glob("*.json") if p.stem.isdecimal()),
                        default=0,
                    )
                    + 1
                )
                while not link_once(
                    draft, self.workflow(number)
                ):  # someone else submits at the same time
                    number += 1
            sync_folder(self.workflows)
        knock(self.path)
        return number

    def read(self, number: int) -> tuple[Runnable, float]:
        """The workflow of this number, and when it was submitted. InputError if it cannot be
        used."""
        return read_submission(self.workflow(number))

    def wish(self, what: str) -> None:
        """Ask the server for something: `stop`, `cancel-N`."""
        with disk_faults(f"{self.wishes / what}: cannot be written"):
            (self.wishes / what).touch(mode=0o600)
        knock(self.path)

    def wished(self) -> list[str]:
        """What is asked of the server, in a fixed order."""
        with os.scandir(self.wishes) as found:
            return sorted(entry.name for entry in found)

    def fulfil(self, what: str) -> None:
        """The wish has come true, or never can."""
        discard(self.wishes / what)


def own_root() -> Path:
    """Where pools that are named in this folder are kept."""
    return project_folder() / _POOLS


def pool_at(name: str, root: Path | None = None) -> PoolFolder:
    """The folder of the pool of this name, or at this path, whether or not it is there."""
    if "/" in name:
        return PoolFolder(Path(name).absolute())
    if not _NAME.fullmatch(name):
        raise UserError(
            f"{name!r} cannot be the name of a pool; use letters, digits, '.', '_' and '-'"
        )
    return PoolFolder((root or own_root()).absolute() / name)


def find_pool(name: str, root: Path | None = None) -> PoolFolder:
    """The pool of this name, or at this path. UserError if there is none."""
    folder = pool_at(name, root)
    try:
        if folder.journal.is_file():
            return folder
        known = sorted(path.parent.name for path in (root or own_root()).glob("*/journal.sqlite"))
    except PermissionError as error:
        raise UserError(
            f"{error.filename} cannot be read: {error.strerror}; a pool is for the user who "
            "started it"
        ) from None
    if "/" in name or not known:
        raise UserError(f"there is no pool in {folder.path}; windrow pool {name} starts one")
    raise unknown_name("pool", name, known)
