"""The folder of a campaign: one Parquet file for each finished chunk, and one table at the end.

    FOLDER/chunks/NAME-DIGEST.parquet    a finished chunk; appears complete or not at all
    FOLDER/CAMPAIGN.parquet              the whole table, sorted by its key
    FOLDER/CAMPAIGN.json                 what was run

Rule 1: a chunk file is never changed. Rule 2: one campaign at a time in a folder; the lock goes
with its process, however that ends. Half-written files of a process that died are ignored, and
removed by the next.
"""

import fcntl
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from windrow.deletion import discard
from windrow.errors import OutsideError, UserError
from windrow.formats.disk import replace_bytes, replace_text
from windrow_lab.campaign.campaign import Campaign, Chunk
from windrow_lab.campaign.rows import KEY, SCHEMA


class ChunkStore:
    """A campaign's folder; made if it is missing."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.chunks = self.folder / "chunks"
        try:
            self.chunks.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"{folder}: cannot be created ({error.strerror}); give another"
            ) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone in the folder, with what dead processes left behind removed. UserError if
        another is at work."""
        with (self.folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(
                    f"{self.folder}: a campaign is running there; wait for it, or use another"
                ) from None
            for torn in sorted(self.chunks.glob(".*.part")):
                discard(torn)
            yield

    def path(self, chunk: Chunk) -> Path:
        """Where the chunk is, or will be."""
        return self.chunks / f"{chunk.name}-{chunk.digest()}.parquet"

    def has(self, chunk: Chunk) -> bool:
        """Whether it is finished."""
        return self.path(chunk).is_file()

    def read(self, chunks: Sequence[Chunk]) -> pa.Table:
        """The rows of these chunks, sorted by their key; all must be finished."""
        tables = [read_rows(self.path(chunk)) for chunk in chunks]
        return pa.concat_tables(tables).sort_by([(column, "ascending") for column in KEY])

    def failures(self, chunk: Chunk) -> int:
        """How many trials of a finished chunk failed."""
        column = parquet.read_table(self.path(chunk), columns=["error"]).column("error")
        return len(column) - int(column.null_count)

    def finish(self, campaign: Campaign) -> pa.Table:
        """The campaign's table, which is also left in the folder, with a description beside it."""
        table = self.read(campaign.chunks())
        write_rows(table, self.folder / f"{campaign.name}.parquet")
        replace_text(
            self.folder / f"{campaign.name}.json", json.dumps(_description(campaign), indent=2)
        )
        return table


def read_rows(path: Path, schema: pa.Schema = SCHEMA) -> pa.Table:
    """The table at that place. OutsideError if it cannot be read."""
    try:
        return parquet.read_table(path, schema=schema)
    except (OSError, pa.ArrowInvalid) as error:
        raise OutsideError(f"{path}: cannot be read ({error}); delete it and run again") from None


def write_rows(table: pa.Table, path: Path) -> None:
    """Keep the rows of a finished chunk, or of all, at their place: whole or not at all."""
    with replace_bytes(path) as stream:
        parquet.write_table(table, stream)


def _description(campaign: Campaign) -> dict[str, object]:
    return {
        "campaign": campaign.name,
        "digest": campaign.digest(),
        "trials": campaign.trials,
        "logs": {log.name: log.content for log in campaign.logs},
        "requests": campaign.requests,
        "rules": [rules.label for rules in campaign.rules],
        "workflows": {workflow.name: workflow.content for workflow in campaign.workflows},
        "submit_s": campaign.submit_s,
        "strategies": [repr(strategy) for strategy in campaign.strategies],
        "caps": campaign.caps,
        "seeds": campaign.seeds,
        "noise": campaign.noise,
        **({"failures": asdict(campaign.failures)} if campaign.failures else {}),
        "terms": dict(campaign.terms),
        "chunks": [f"{chunk.name}-{chunk.digest()}.parquet" for chunk in campaign.chunks()],
    }
