"""Calls that are not trials of a campaign, in several processes; what one gives is kept, so that a
run can be continued.

Law: the file of a call is named by everything that its result depends on: the function and its
arguments, the code that it imports, the tables beside it, and the logs that it is given.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import as_completed
from functools import partial
from pathlib import Path
from typing import Any

from windrow.files import replacing
from windrow.trials.processes import no_interruption, worker_processes
from windrow_lab.campaign.code import code_digest
from windrow_lab.campaign.sources import LogSource

Call = Callable[[], Any]
Tell = Callable[[int, int], None]


def run_calls(calls: Sequence[Call], workers: int, tell: Tell, folder: Path) -> list[Any]:
    """What the calls give, in their order, whatever the number of processes; `tell` hears how many
    are done.

    Results are kept in the folder, which must be the user's own, and taken from there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{_digest(call)}.pickle" for call in calls]
    missing = [(call, path) for call, path in zip(calls, paths, strict=True) if not path.exists()]
    kept = len(calls) - len(missing)
    tell(kept, len(calls))
    if len(missing) <= 1 or workers == 1:
        made: Iterator[Path] = (_keep(*one) for one in missing)
    else:
        made = _kept_by_workers(missing, workers)
    for done, _ in enumerate(made, start=kept + 1):
        tell(done, len(calls))
    return [pickle.loads(path.read_bytes()) for path in paths]


def _kept_by_workers(missing: Sequence[tuple[Call, Path]], workers: int) -> Iterator[Path]:
    with worker_processes(workers) as pool:
        with no_interruption():  # submitting starts the workers
            futures = [pool.submit(_keep, *one) for one in missing]
        for future in as_completed(futures):
            yield future.result()


def _keep(call: Call, path: Path) -> Path:
    found = call()
    with replacing(path, lasting=False) as file:
        pickle.dump(found, file)
    return path


def _digest(call: Call) -> str:
    if isinstance(call, partial):
        given = call
    else:
        given = partial(call)
    module = given.func.__module__
    digest = hashlib.sha256(pickle.dumps(call) + code_digest(frozenset([module])).encode())
    for table in sorted(
        Path(getattr(sys.modules[module], "__file__", "") or ".").parent.glob("*.toml")
    ):
        digest.update(table.read_bytes())
    for value in (*given.args, *given.keywords.values()):
        for one in value if isinstance(value, tuple) else ():
            digest.update(one.content.encode() if isinstance(one, LogSource) else b"")
    return digest.hexdigest()[:24]
