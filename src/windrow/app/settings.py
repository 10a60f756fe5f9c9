"""`windrow.toml`: how queues and sites are reached. Looked for here, in the folders above, then in
~/.config/windrow.

Every key, with what it means: examples/every-setting/windrow.toml, of which a page of the
documentation is made.

Both kinds of tables take all keys; a [queues.NAME] says `kind` where a [sites.NAME] says `queue`.

Rule: the keys of a table are the fields of its type, and all tables are checked whenever one is
read.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta, Struct

from windrow.app.ownership import refuse_foreign
from windrow.errors import InputError, UserError, unknown_name
from windrow.formats.disk import read_toml
from windrow.formats.tables import BadKeyError, Seconds, Size, TomlFile, as_type
from windrow.model.hazard import NO_HAZARD, Hazard
from windrow.model.volume import COPY
from windrow.places import user_folder

NAME = "windrow.toml"
TABLES = ("queues", "sites", "data", "run", "profiles")
HERE = "here"
"""What `shares_files_with` calls the folder from which a run is started."""
_MOST = 1e300
"""Numbers are finite."""

_Number = Annotated[float, Meta(ge=0, le=_MOST)]
_Amount = Annotated[_Number | None, Meta(description="a number of at least 0")]
_T = TypeVar("_T", bound=Struct)
_Said = Annotated[int, Meta(ge=0)] | _Number | str


class SiteTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of a site itself, whatever queue it has."""

    kind: str = ""
    host: str = ""
    data_host: str = ""
    folder: str = ""
    setup: str = ""
    room: Size | None = None
    preempted_every: Seconds | None = None
    max_preemptions: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="a whole number of at least 1")
    ] = None
    max_node_hours: _Amount = None
    price: Annotated[_Number, Meta(description="a number of at least 0")] = 0.0
    speed: Annotated[float, Meta(gt=0, le=_MOST, description="a number above 0")] = 1.0
    hold: bool = True
    attributes: Annotated[dict[str, _Said], Meta(description='a table such as {gpu = "a100"}')] = {}
    shares_files_with: Annotated[
        tuple[str, ...] | None, Meta(description='a list such as ["here"]')
    ] = None

    def __post_init__(self) -> None:
        if self.preempted_every is not None and not self.preempted_every:
            raise BadKeyError(
                "preempted_every",
                "preempted_every must be above 0; leave it out if no job is preempted",
            )
        for key in ("data_host", "folder"):
            if getattr(self, key) and not self.host:
                raise BadKeyError(
                    key, f"{key} is for a site with a host; add host, or leave it out"
                )

    @property
    def room_bytes(self) -> int | None:
        """The space for files of runs there."""
        if self.room is None:
            return None
        return int(self.room)

    @property
    def hazard(self) -> Hazard:
        """How often its jobs are taken away."""
        if self.preempted_every is None:
            return NO_HAZARD
        return Hazard(preemption_rate=1 / float(self.preempted_every))

    @property
    def friends(self) -> Sequence[str]:
        """With whom it shares files."""
        if self.shares_files_with is not None:
            return self.shares_files_with
        if self.host:
            return ()
        return (HERE,)


class LocalTable(SiteTable, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A queue on this machine."""

    nodes: int | None = None
    cores: int | None = None
    memory: Size | None = None
    gpus: int | None = None
    disk: Size | None = None
    resources: Annotated[dict[str, Any], Meta(description="a table such as {licence = 2}")] = {}
    policy: str | None = None
    walltime: Seconds | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.host:
            raise BadKeyError(
                "host",
                'a site with a host needs queue = "slurm" or "pbs"; leave host out for this '
                "machine",
            )
        if self.walltime is not None and not self.walltime:
            raise BadKeyError("walltime", "walltime must be above 0; leave it out for no limit")


class SlurmTable(SiteTable, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Slurm."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    cluster: str = ""
    extra: Annotated[
        tuple[str, ...], Meta(description='a list of options such as ["--licenses=x:1"]')
    ] = ()
    share: Annotated[Literal["", "nodes", "cores"], Meta(description='"nodes" or "cores"')] = ""
    memory: Annotated[Literal["", "default"], Meta(description='"default", or left out')] = ""


class PbsTable(SiteTable, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A PBS."""

    queue: str = ""
    account: str = ""
    project: str = ""


KINDS: Mapping[str, type[LocalTable | SlurmTable | PbsTable]] = {
    "local": LocalTable,
    "slurm": SlurmTable,
    "pbs": PbsTable,
}


class DataTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is said of the files of runs."""

    limit: Size | None = None
    folder: str = ""
    scratch: str = ""
    keep: Annotated[tuple[str, ...], Meta(description='a list of patterns such as ["*.bam"]')] = ()
    share: Annotated[
        Literal["copy", "sbcast", "peer"], Meta(description='"peer", "sbcast" or "copy"')
    ] = "copy"
    late: Seconds | None = None

    def __post_init__(self) -> None:
        if self.share != COPY and not self.scratch:
            raise BadKeyError(
                "share",
                "share needs scratch, where shared data are kept; "
                'write share = "peer" or "sbcast", and scratch = "$TMPDIR"',
            )


class RunTable(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `windrow run` takes where its command line says nothing: its options. None: not said.

    Which values an option takes is known to the command line alone.
    """

    on: str | None = None
    strategy: str | None = None
    objective: str | None = None
    deadline: str | None = None
    think: int | None = None
    cap: int | None = None
    margin: _Amount = None
    max_nodes: int | None = None
    copies: int | None = None
    reliability: _Amount = None
    speculate: bool | None = None
    delete_intermediate: bool | None = None
    space: str | None = None
    space_order: str | None = None
    scratch: str | None = None
    risk: _Amount = None
    guess: str | None = None

    def said(self) -> dict[str, Any]:
        """The keys that are there."""
        found = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in found.items() if value is not None}


class Settings(Struct, frozen=True, dict=True):
    """All that a file says; nothing without one."""

    file: Path | None = None
    tables: Mapping[str, SiteTable] = {}
    """By the names of their queues and sites."""
    sites: Sequence[str] = ()
    """Which of them are sites."""
    data: DataTable = DataTable()
    run: RunTable = RunTable()
    profiles: Mapping[str, RunTable] = {}

    def of(self, name: str) -> SiteTable:
        """What is said of the site of this name."""
        return self.tables.get(name, _SILENT)

    def place_in_file(self, name: str) -> str:
        """How the table of this name is called."""
        return f"[{'sites' if name in self.sites else 'queues'}.{name}]"

    @cached_property
    def limit(self) -> tuple[str, int] | None:
        """The folder of which [data] speaks, and what files of all runs below it may take; None if
        it says nothing."""
        if self.file is None or self.data.limit is None:
            return None
        folder = Path(self.file.parent, Path(self.data.folder).expanduser())
        return os.path.realpath(folder), int(self.data.limit)

    def files_of(self, name: str) -> str:
        """Whose files a site sees: the first of all that share them with each other, or empty for
        those of this folder."""
        pairs = [(one, other) for one, table in self.tables.items() for other in table.friends]
        if name in self.tables:
            group = {name}
        else:
            group = {HERE}
        size = 0
        while len(group) > size:
            size = len(group)
            group |= {one for pair in pairs if group.intersection(pair) for one in pair}
        if HERE in group:
            return ""
        return next(one for one in self.tables if one in group)


_SILENT = SiteTable()
_NO_SETTINGS = Settings()


def find_settings(start: Path | None = None) -> Path | None:
    """The settings file that counts here; None if there is none. UserError if another user
    wrote it."""
    here = (start or Path.cwd()).absolute()
    for folder in (here, *here.parents, user_folder("config")):
        if (folder / NAME).exists():  # a pipe or a folder of this name is refused, not passed over
            refuse_foreign(folder / NAME, trusts_root=True)
            return folder / NAME
    return None


_READ: ContextVar[dict[Path, Settings] | None] = ContextVar("_READ", default=None)
"""What was read since `read_once` began, by the folder for which it counts, and by file."""
_NO_FILE = Path("/dev/null")
"""Stands for the file if there is none."""


@contextmanager
def read_once() -> Iterator[None]:
    """Within the body settings are looked for once, and stay as they were then: all of a command
    goes by the same ones. Inside another such body, nothing changes."""
    token = _READ.set({} if (known := _READ.get()) is None else known)
    try:
        yield
    finally:
        _READ.reset(token)


def settings_of(start: Path | None = None) -> Settings:
    """The settings that count here."""
    known = _READ.get()
    if known is None:
        return read_settings(find_settings(start))
    folder = (start or Path.cwd()).absolute()
    if folder not in known:
        file = find_settings(folder) or _NO_FILE
        if file not in known:
            known[file] = read_settings(None if file == _NO_FILE else file)
        known[folder] = known[file]
    return known[folder]


def _check_tables(file: TomlFile, what: str, said: object) -> None:
    """What is said there is about queues, sites or profiles: a table for each."""
    if what not in TABLES:
        fix = (
            "queues are described in [queues.NAME], sites in [sites.NAME], the space for files in "
            "[data], options of windrow run in [run] and [profiles.NAME]"
        )
        raise file.fault(str(unknown_name("table", what, TABLES)), table=what, fix=fix)
    if not isinstance(said, dict) or not all(isinstance(one, dict) for one in said.values()):
        raise file.fault(f"{what} are tables", table=what, fix=f"write [{what}.NAME]")


def _check_shared_files(
    file: TomlFile, tables: Mapping[str, SiteTable], sites: Collection[str]
) -> None:
    """Files are shared with a site that is described, too."""
    for name, told in tables.items():
        for other in told.shares_files_with or ():
            if other not in tables and other != HERE:
                with _telling(file, f"{'sites' if name in sites else 'queues'}.{name}"):
                    unknown = unknown_name("site of shares_files_with", other, [HERE, *tables])
                    raise BadKeyError("shares_files_with", str(unknown))


def read_settings(path: Path | None) -> Settings:
    """What a settings file says, all of it checked; nothing without a file. InputError if it
    cannot be understood."""
    if path is None or (path.is_file() and path.stat().st_size == 0):
        return _NO_SETTINGS
    file = TomlFile(path, *read_toml(path))
    tables = dict[str, SiteTable]()
    sites = list[str]()
    data = DataTable()
    run = RunTable()
    profiles = dict[str, RunTable]()
    for what, said in file.values.items():
        if what == "data":
            data = _alone(file, DataTable, what, said)
            continue
        if what == "run":
            run = _alone(file, RunTable, what, said)
            continue
        _check_tables(file, what, said)
        if what == "profiles":
            profiles = {
                name: _alone(file, RunTable, f"{what}.{name}", table)
                for name, table in said.items()
            }
            continue
        for name, table in said.items():
            with _telling(file, f"{what}.{name}"):
                _refuse_name(name, tables, is_site=what == "sites")
                tables[name] = _table(name, table, is_site=what == "sites")
            if what == "sites":
                sites.append(name)
    _check_shared_files(file, tables, sites)
    return Settings(path, tables, sites, data, run, profiles)


@contextmanager
def _telling(file: TomlFile, table: str) -> Iterator[None]:
    """A fault in the body is told at this table, with file and line."""
    try:
        yield
    except InputError:
        raise
    except UserError as error:
        if isinstance(error, BadKeyError):
            key = error.key
        else:
            key = ""
        raise file.fault(f"[{table}] {error}", table=table, key=key) from None


def _alone(file: TomlFile, kind: type[_T], name: str, said: object) -> _T:
    """A table of which there is one of this name."""
    if not isinstance(said, dict):
        raise file.fault(f"{name} is a table", table=name, fix=f"write [{name}]")
    with _telling(file, name):
        return as_type(kind, said)


def _table(name: str, said: Mapping[str, Any], *, is_site: bool) -> SiteTable:
    """What is said of a site or queue; of a site, `queue` is the kind."""
    names_kind = "queue" if is_site and "queue" in said else "kind"
    kind = said.get(names_kind, name)
    if not isinstance(kind, str) or kind not in KINDS:
        raise BadKeyError(names_kind, str(unknown_name("queue", str(kind), KINDS)))
    told = KINDS[kind]
    keys = [key for key in told.__struct_fields__ if key not in ("kind", names_kind)]
    table = {key: value for key, value in said.items() if key not in ("kind", names_kind)}
    return as_type(told, {**table, "kind": kind}, ("kind", names_kind, *keys))


def _refuse_name(name: str, known: Mapping[str, SiteTable], *, is_site: bool) -> None:
    """UserError if a queue or site cannot be called this."""
    if name in known:
        why = "is described twice"
    elif "," in name:
        why = "has a comma, which stands between names"
    elif is_site and name == HERE:
        why = (
            "is what shares_files_with calls the folder from which a run is started, and "
            "cannot be a site"
        )
    else:
        return
    raise UserError(f"{name!r} {why}; give each table a name of its own, without commas")
