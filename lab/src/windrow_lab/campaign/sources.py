"""Where a campaign's logs and workflows come from: a file, or a recipe with its seed.

A source is a small value that travels to worker processes in place of what it stands for. Its
`content` says what it will give, by the bytes of its file or by its recipe, wherever the file lies:
the same content means the same data.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from windrow.errors import UserError
from windrow.formats import read_log, read_workflow
from windrow.formats.disk import read_bytes
from windrow.model import Log, Workflow
from windrow.recipes import generate_log, generate_workflow


@dataclass(frozen=True, slots=True)
class LogSource:
    """A log under a name of its own: the SWF file at `path`, or one drawn by `model`."""

    name: str
    path: str = ""
    model: str = ""
    seed: int = 0
    days: float | None = None
    nodes: int | None = None
    parameters: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if bool(self.path) == bool(self.model):
            raise UserError(f"log {self.name}: give either a file or a model")

    @property
    def content(self) -> str:
        """What the log will hold, in a few words that change whenever it does."""
        if self.path:
            return f"file {_file_digest(self.path)} nodes {self.nodes}"
        return f"model {self.model} {self.seed} {self.days} {self.nodes} {sorted(self.parameters)}"

    def load(self, requests: str) -> Log:
        """The log itself, with actual or accurate requests. InputError if the file cannot be
        used."""
        if self.path:
            log = read_log(self.path, nodes=self.nodes)
        else:
            drawing = {"days": self.days, "nodes": self.nodes, "parameters": dict(self.parameters)}
            log = generate_log(self.model, seed=self.seed, **drawing)  # type: ignore[arg-type]
        if requests == "accurate":
            return log.accurate()
        return log


@dataclass(frozen=True, slots=True)
class WorkflowSource:
    """A workflow under a name of its own: the file at `path`, or one made by `recipe`.

    For a file, `tasks` is only a hint at its size: the order of the work and the time left are
    reckoned with it.
    """

    name: str
    path: str = ""
    recipe: str = ""
    tasks: int = 100
    work_s: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if bool(self.path) == bool(self.recipe):
            raise UserError(f"workflow {self.name}: give either a file or a recipe")

    @property
    def content(self) -> str:
        """What the workflow will be, in a few words that change whenever it does."""
        if self.path:
            return f"file {_file_digest(self.path)}"
        return f"recipe {self.recipe} {self.tasks} {self.work_s} {self.seed}"

    def load(self) -> Workflow:
        """The workflow itself. InputError if the file cannot be used."""
        if self.path:
            return read_workflow(self.path)
        return generate_workflow(self.recipe, tasks=self.tasks, work_s=self.work_s, seed=self.seed)


def _file_digest(path: str) -> str:
    """Of the unpacked bytes; read again only if the file has changed since."""
    try:
        state = Path(path).stat()
    except OSError:
        return _digest_at(path, 0, 0)  # reading it names the fault
    return _digest_at(path, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=256)
def _digest_at(path: str, _mtime_ns: int, _size_bytes: int) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()[:32]
