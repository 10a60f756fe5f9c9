"""`windrow.toml`: how queues and sites are reached. Looked for here, in the folders above, then in ~/.config/windrow.

[queues.slurm]                  # the name that --on takes
kind = "slurm"                  # default: the name
partition = "short"
account = "ab123"
qos = "normal"
constraint = "skylake"
extra = ["--licenses=x:1"]      # handed to sbatch as they are
room = "2TB"                    # for the files of runs there: a quota (any kind of queue)

[queues.local]                  # this machine; all keys may be left out
cores = 4                       # the most that a job uses at once
memory = "16GiB"                # likewise, by what tasks state
walltime = "12h"                # end jobs that take longer (default: no limit)

[queues.try]                    # a small cluster played on this machine, with whole nodes and walltimes
kind = "local"
nodes = 4
cores = 1                       # of each node
policy = "easy"

[sites.west]                    # a queue, and where its files are; --on takes several: --on local,west
queue = "slurm"                 # kind, with the keys of such a queue as above
cluster = "dusk"                # another cluster of the same Slurm: -M on every command
host = "login.west.example"     # where its commands run, by ssh (default: here)
data_host = "dtn.west.example"  # where files are sent (default: host)
folder = "/scratch/me/windrow"  # where runs are kept there
shares_files_with = ["here"]    # sites that see the same files; here: the folder of the run (default without a host)
speed = 1.3                     # how many times as fast tasks run there
setup = "module load gcc"       # in the shell of a job, before its agent
max_node_hours = 2000           # what one run may use there
price = 0.5                     # of a node-hour, for --objective cost
preempted_every = "2h"          # its jobs are taken away, on average after this time (default: as learned)
max_preemptions = 2             # tasks that were preempted this often go to another site, if there is one
attributes = {gpu = "a100"}     # for `where:` conditions of tasks

[data]
limit = "2TB"                   # what files of all runs below a folder may take together; --space: of one run
folder = "/scratch/me"          # which folder (default: that of this file)
scratch = "$TMPDIR"             # disks of the nodes' own: tasks work there, and results are copied from there
share = "peer"                  # what many tasks read comes there from other nodes, or by "sbcast" (default: "copy")
keep = ["*.bam"]                # files that are copied from there even if only tasks of the same job read them

Both kinds of tables take all keys; a [queues.NAME] says `kind` where a [sites.NAME] says `queue`.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from windrow.app.ownership import refuse_foreign
from windrow.errors import InputError, UserError, unknown_name
from windrow.formats.disk import read_toml
from windrow.model.duration import parse_duration
from windrow.model.hazard import Hazard
from windrow.model.size import parse_size
from windrow.model.volume import COPY, WAYS
from windrow.places import user_folder

NAME = "windrow.toml"
TABLES = ("queues", "sites")
HERE = "here"
"""What `shares_files_with` calls the folder from which a run is started."""
_TEXT, _NUMBER = (str, "text in quotes"), (float, "a number of at least 0")
SITE_KEYS: Mapping[str, tuple[type, str]] = {
    **dict.fromkeys(("host", "data_host", "folder", "setup", "room", "preempted_every"), _TEXT),
    **dict.fromkeys(("max_node_hours", "price"), _NUMBER),
    "max_preemptions": (int, "a whole number of at least 1"),
    "speed": (float, "a number above 0"),
    "attributes": (dict, 'a table such as {gpu = "a100"}'),
    "shares_files_with": (list, 'a list such as ["here"]'),
}
"""Keys that say something of the site itself, not of its queue: what they are, and in words."""


def find_settings(start: Path | None = None) -> Path | None:
    """The settings file that counts here; None where there is none. UserError where another user wrote it."""
    here = (start or Path.cwd()).absolute()
    for folder in (here, *here.parents, user_folder("config")):
        if (folder / NAME).exists():  # a pipe or a folder of this name is refused, not passed over
            refuse_foreign(folder / NAME, trusts_root=True)
            return folder / NAME
    return None


def read_settings(path: Path | None, among: Sequence[str] = TABLES) -> dict[str, dict[str, Any]]:
    """The tables of a settings file, by the names of their queues and sites; none without a file."""
    if path is None or (path.is_file() and path.stat().st_size == 0):
        return {}
    found: dict[str, dict[str, Any]] = {}
    for what, tables in read_toml(path)[1].items():
        if what == "data":
            continue
        if what not in TABLES:
            fix = "queues are described in [queues.NAME], sites in [sites.NAME], the space for files in [data]"
            raise InputError(path, f"unknown table [{what}]", fix=fix)
        if not isinstance(tables, dict) or not all(isinstance(value, dict) for value in tables.values()):
            raise InputError(path, f"{what} are tables", fix=f"write [{what}.NAME]")
        for name, table in tables.items() if what in among else ():
            if name in found or "," in name or (name == HERE and what == "sites"):
                why = "is described twice" if name in found else "is not a name for a site"
                raise InputError(path, f"{name!r} {why}", fix="give each table a name of its own, without commas")
            kind = {"kind": table["queue"]} if what == "sites" and "queue" in table else {}
            found[name] = {key: value for key, value in table.items() if key != "queue" or not kind} | kind
    return found


def data_table(path: Path | None) -> dict[str, Any]:
    """What [data] says; nothing where there is none. InputError where it cannot be understood."""
    if path is None or (path.is_file() and path.stat().st_size == 0):
        return {}
    table = read_toml(path)[1].get("data", {})
    keys: dict[str, type] = {"limit": str, "folder": str, "scratch": str, "keep": list, "share": str}
    if not isinstance(table, dict) or not all(isinstance(value, keys.get(name, int)) for name, value in table.items()):
        fix = 'write limit = "2TB", folder = "/scratch/me", scratch = "$TMPDIR", keep = ["*.bam"], share = "peer"'
        raise InputError(path, "[data] takes limit, folder, scratch, keep and share", fix=fix)
    if not all(isinstance(pattern, str) for pattern in table.get("keep", ())):
        raise InputError(path, "keep of [data] is a list of patterns", fix='write keep = ["*.bam"]')
    if (share := table.get("share", COPY)) not in WAYS or (share != COPY and "scratch" not in table):
        why = f"is {share!r}" if share not in WAYS else "needs scratch, where shared data are kept"
        fix = 'write share = "peer", "sbcast" or "copy", and scratch = "$TMPDIR"'
        raise InputError(path, f"share of [data] {why}", fix=fix)
    return table


def data_limit(path: Path | None) -> tuple[str, int] | None:
    """The folder of which [data] speaks, and what files of all runs below it may take; None where it says nothing."""
    table = data_table(path)
    if path is None or "limit" not in table:
        return None
    try:
        return os.path.realpath(Path(path.parent, Path(table.get("folder", "")).expanduser())), parse_size(
            table["limit"]
        )
    except UserError as error:
        raise InputError(path, f"limit of [data]: {error}") from None


def site_fields(name: str, tables: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the table of this name says of the site itself, as fields of a `Site`. UserError where it is wrong."""
    table, fields = tables.get(name, {}), dict[str, Any]()
    for key, value in table.items():
        if key not in SITE_KEYS:
            continue
        kind, wanted = SITE_KEYS[key]
        if not _is(value, kind) or (key in ("speed", "max_preemptions") and not value):
            raise UserError(f"{key} must be {wanted}, not {value!r}")
        fields[key] = float(value) if kind is float else value
    if "room" in fields:
        fields["room_bytes"] = parse_size(fields.pop("room"))
    if (every := fields.pop("preempted_every", None)) is not None:
        if not (every_s := parse_duration(every)):
            raise UserError("preempted_every must be above 0; leave it out where no job is preempted")
        fields["hazard"] = Hazard(preemption_rate=1 / every_s)
    for other in fields.pop("shares_files_with", ()):
        if other not in tables and other != HERE:
            raise unknown_name("site of shares_files_with", str(other), [HERE, *tables])
    if needless := [key for key in ("data_host", "folder") if key in fields and "host" not in fields]:
        raise UserError(f"{needless[0]} is for a site with a host; add host, or leave it out")
    return fields | ({"files": files} if (files := _files_of(name, tables)) else {})


def _files_of(name: str, tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Whose files a site sees: the first of all that share them with each other, or empty for those of this folder."""
    said = {one: table.get("shares_files_with", [] if "host" in table else [HERE]) for one, table in tables.items()}
    pairs = [(one, str(other)) for one, others in said.items() if isinstance(others, list) for other in others]
    group, size = {name} if name in tables else {HERE}, 0
    while len(group) > size:
        size = len(group)
        group |= {one for pair in pairs if group.intersection(pair) for one in pair}
    return "" if HERE in group else next(one for one in tables if one in group)


def _is(value: object, kind: type) -> bool:
    if isinstance(value, dict):
        return kind is dict and all(_is(one, str) or _is(one, float) for one in value.values())
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
    if isinstance(value, bool):
        return False
    return isinstance(value, kind) and not (isinstance(value, int) and value < 0)
