"""`--jobs-out`: every job of a simulation as a row, in CSV or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from windrow.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from windrow.sim.simulation import Simulation

_SUFFIXES = (".csv", ".csv.gz", ".parquet")
_ROWS_PER_WRITE = 65536


def check_suffix(path: str) -> None:
    """UserError where the name says no format that can be written: better before a simulation than after."""
    from windrow.formats.parquet import need_parquet

    if not path.lower().endswith(_SUFFIXES):
        raise UserError(f"{path}: jobs are written to a file whose name ends in {', '.join(_SUFFIXES)}; rename it")
    if path.lower().endswith(".parquet"):
        need_parquet(f"writing {path}")


def write_jobs(path: str, simulations: Sequence[Simulation], from_s: float, to_s: float) -> None:
    """The jobs submitted in [from_s, to_s); with several simulations one after the other, `policy` in front."""
    from windrow.formats.disk import replace_bytes

    blocks = [_columns(simulation, from_s, to_s, named=len(simulations) > 1) for simulation in simulations]
    with replace_bytes(path) as stream:
        if path.lower().endswith(".parquet"):
            import pyarrow as pa
            from pyarrow import parquet

            parquet.write_table(pa.concat_tables([pa.table(block) for block in blocks]), stream)
            return
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(blocks[0])
        for block in blocks:
            writer.writerows(zip(*(_cells(column) for column in block.values()), strict=True))
        text.detach()  # the stream is closed by its owner


def _columns(
    simulation: Simulation, from_s: float, to_s: float, *, named: bool
) -> dict[str, NDArray[np.int64] | list[str]]:
    log = simulation.log
    counted = (log.submit_s >= from_s) & (log.submit_s < to_s)
    columns = {
        "job": log.job,
        "submit_s": log.submit_s,
        "start_s": simulation.start_s,
        "end_s": simulation.end_s,
        "wait_s": simulation.wait_s,
        "nodes": log.nodes,
        "requested_s": log.requested_s,
        "run_s": simulation.ran_s,
    }
    policy: dict[str, NDArray[np.int64] | list[str]] = (
        {"policy": [simulation.label] * int(counted.sum())} if named else {}
    )
    return policy | {name: column[counted] for name, column in columns.items()}


def _cells(column: NDArray[np.int64] | list[str]) -> list[int] | list[str]:
    return column if isinstance(column, list) else column.tolist()
