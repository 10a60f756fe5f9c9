"""A sweep: what one campaign file asks for. One campaign for each margin, noise and kind of
failures, in one folder and one table.

    FOLDER/campaign.json    the manifest: which chunks belong to it; written before anything runs
    FOLDER/chunks/          the finished chunks (see `windrow_lab.campaign.store`)
    FOLDER/NAME.parquet     the whole table, once all chunks are there

Law: the manifest and the chunks are enough to say how far a sweep is and what came of it; no
process needs to be asked. Rows are those of a campaign, with `margin`, `noise` and `failures` in
front.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from windrow.errors import OutsideError, UserError
from windrow.formats.disk import replace_text
from windrow_lab.campaign.campaign import Campaign, Chunk
from windrow_lab.campaign.rows import KEY, SCHEMA
from windrow_lab.campaign.store import ChunkStore, read_rows, write_rows

MANIFEST = "campaign.json"
SWEEP_KEY = ("margin", "noise", "failures", *KEY)
"""The columns that name a row of a sweep's table."""

_LABELS = (("margin", pa.float64()), ("noise", pa.float64()), ("failures", pa.string()))
SWEEP_SCHEMA = pa.schema([*_LABELS, *SCHEMA])


@dataclass(frozen=True, slots=True)
class Part:
    """The campaign of one margin, one noise and one text of failures."""

    margin: float
    noise: float
    failures: str
    campaign: Campaign


@dataclass(frozen=True, slots=True)
class Sweep:
    """All parts, in the order of the file."""

    name: str
    parts: tuple[Part, ...]

    def chunks(self) -> list[Chunk]:
        """The chunks of all parts, in the order of the file."""
        return [chunk for part in self.parts for chunk in part.campaign.chunks()]

    @property
    def trials(self) -> int:
        """How many rows the table will have."""
        return sum(part.campaign.trials for part in self.parts)


@dataclass(frozen=True, slots=True)
class PartFiles:
    """What the manifest says of a part."""

    margin: float
    noise: float
    failures: str
    trials: int
    chunks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SweepResults:
    """How far a sweep is, and the rows that are there; `table_path` is None until it is
    complete."""

    name: str
    folder: Path
    trials: int
    rows: pa.Table
    table_path: Path | None

    @property
    def failed(self) -> int:
        """Trials that failed."""
        column = self.rows.column("error")
        return len(column) - int(column.null_count)


def write_manifest(sweep: Sweep, store: ChunkStore) -> None:
    """Say in the folder what belongs to this sweep. UserError if the folder is another's."""
    path = store.folder / MANIFEST
    if path.exists() and (other := _manifest(path)[0]) != sweep.name:
        raise UserError(
            f"{store.folder}: it contains campaign {other!r}, not {sweep.name!r}; give another "
            "folder"
        )
    parts = [
        {
            "margin": part.margin,
            "noise": part.noise,
            "failures": part.failures,
            "trials": part.campaign.trials,
            "chunks": [store.path(chunk).name for chunk in part.campaign.chunks()],
        }
        for part in sweep.parts
    ]
    replace_text(path, json.dumps({"campaign": sweep.name, "parts": parts}, indent=1))


def read_results(folder: str | Path) -> SweepResults:
    """What is finished in the folder. The whole table is written if all is there and it is not.
    Runs nothing."""
    place = Path(folder)
    path = place / MANIFEST
    if not path.is_file():
        raise UserError(
            f"{place}: no campaign was run there (it has no {MANIFEST}); give the folder of --out"
        )
    name, parts = _manifest(path)
    rows, is_complete = _finished(place / "chunks", parts)
    table_path = None
    if is_complete:
        table_path = place / f"{name}.parquet"
        _keep_table(table_path, rows)
    return SweepResults(name, place, sum(p.trials for p in parts), rows, table_path)


def _finished(chunks: Path, parts: Sequence[PartFiles]) -> tuple[pa.Table, bool]:
    """The rows of all chunks that are there, and whether these are all."""
    files = [(part, chunks / chunk) for part in parts for chunk in part.chunks]
    there = [(part, file) for part, file in files if file.is_file()]
    tables = [_labelled(read_rows(file), part) for part, file in there]
    order = [(column, "ascending") for column in SWEEP_KEY]
    rows = pa.concat_tables([SWEEP_SCHEMA.empty_table(), *tables]).sort_by(order)
    return rows, len(there) == len(files)


def _keep_table(path: Path, rows: pa.Table) -> None:
    """A table that says the same already is left alone: others may be reading it, and its time
    stamp means something."""
    if not path.is_file() or not read_rows(path, SWEEP_SCHEMA).equals(rows):
        write_rows(rows, path)


def _labelled(table: pa.Table, part: PartFiles) -> pa.Table:
    columns = [pa.array([getattr(part, name)] * len(table), kind) for name, kind in _LABELS]
    return pa.table([*columns, *table.columns], schema=SWEEP_SCHEMA)


def _manifest(path: Path) -> tuple[str, list[PartFiles]]:
    try:
        found = json.loads(path.read_bytes())
        parts = [
            PartFiles(
                p["margin"], p["noise"], p.get("failures", "none"), p["trials"], tuple(p["chunks"])
            )
            for p in found["parts"]
        ]
        return str(found["campaign"]), parts
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise OutsideError(
            f"{path}: cannot be read ({error}); run the campaign again into another folder"
        ) from None
