"""Environment files, TOML or JSON: a cluster whose nodes share its space, and the way from there to
home.

nodes = 50
disk = "5GB"                        # of each node; what they have together is the space, unless --space says it
memory = "1GB"                      # of each node; default 0: nothing is cached there
node_mtbf = "30d"                   # a node fails once in this time, on average; default: never
remote = { bandwidth_bytes_s = "1MB", latency_s = 0.05 }     # to home, shared by all; latency: default 0
local = { bandwidth_bytes_s = "12MB" }                       # of each node, within the cluster
"""  # noqa: E501

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from windrow.errors import UserError
from windrow.formats.disk import AnyPath
from windrow.model.bounds import NODES_MAX
from windrow.model.duration import parse_duration
from windrow_lab.grid.file import amount, explained, read_tables
from windrow_lab.storage.allocations import Environment


class _Network(Struct, forbid_unknown_fields=True):
    bandwidth_bytes_s: Annotated[float, Meta(gt=0)] | str


class _Link(_Network):
    latency_s: Annotated[float, Meta(ge=0)] = 0.0


class _File(Struct, forbid_unknown_fields=True):
    nodes: Annotated[int, Meta(ge=1, le=NODES_MAX)]
    remote: _Link
    local: _Network
    disk: Annotated[int, Meta(ge=1)] | str = 0
    memory: Annotated[int, Meta(ge=0)] | str = 0
    node_mtbf: str = ""


def read_environment(path: AnyPath, space: int | None = None) -> Environment:
    """The environment in a file, with `space` in all if that is given. InputError if it
    cannot be used."""
    text, content = read_tables(path, "an environment")
    with explained(path, text, content, _File):
        file = msgspec.convert(content, _File)
        if space is None and not file.disk:
            raise UserError(
                'how much space is there? give `disk`, such as "5GB", or --space - at `$.nodes`'
            )
        if file.node_mtbf:
            every_s = parse_duration(file.node_mtbf)
        else:
            every_s = 0.0
        if file.node_mtbf and not every_s:
            raise UserError(
                "a node cannot fail all the time; write a time such as 30d - at `$.node_mtbf`"
            )
        return Environment(
            file.nodes,
            file.nodes * int(amount(file.disk, "disk")) if space is None else space,
            amount(file.remote.bandwidth_bytes_s, "remote"),
            amount(file.local.bandwidth_bytes_s, "local"),
            file.nodes / every_s if every_s else 0.0,
            file.remote.latency_s,
            int(amount(file.memory, "memory")),
        )
