"""`windrow` with other constants than it ships with, for worlds in which an hour takes seconds.

    python tests/slurm/hurried.py '{"manager.moving.SILENT_S": 5}' run workflow.yaml ...

A value with a colon names a function of another module: `{"strategies.choosing.choose":
"bench.sites:earliest_start"}`.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module

from windrow.cli.main import main


def hurry(constants: str) -> None:
    """Set them."""
    for path, value in json.loads(constants).items():
        module, _, name = path.rpartition(".")
        at = import_module(f"windrow.{module}")
        assert hasattr(at, name), path
        where, _, what = value.partition(":") if isinstance(value, str) else ("", "", "")
        setattr(at, name, getattr(import_module(where), what) if what else value)


if __name__ == "__main__":
    hurry(sys.argv[1])
    sys.exit(main(sys.argv[2:]))
