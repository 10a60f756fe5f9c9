"""A sweep as one Slurm array job: element I runs shard I of N into the folder that all share.

    FOLDER/slurm/array.sh       what each element runs
    FOLDER/slurm/array.json     the last submission: job, number of shards, which of them
    FOLDER/slurm/JOB_I.out      what element I printed

Rule 1: nothing given by a user passes through a shell unquoted: paths stand quoted in the script,
and options go to sbatch as arguments. Rule 2: while an array of this folder is in the queue, no
second one is submitted. Rule 3: only shards with something left to run become elements.
"""

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from windrow.errors import OutsideError, UserError
from windrow.formats.disk import replace_text
from windrow.queues.command import Answer, run
from windrow.queues.slurm.text import WORDING, submitted_id
from windrow_lab.campaign.shards import unfinished_shards
from windrow_lab.campaign.store import ChunkStore
from windrow_lab.campaign.sweep import Sweep, write_manifest

SHARDS = 16
"""How many shards there are if the user does not say, or fewer if there are fewer chunks."""

_PATIENCE_S = 120


@dataclass(frozen=True, slots=True)
class ArrayJob:
    """One submission: the batch system's number of the array, and which of `count` shards are in
    it."""

    job: str
    count: int
    shards: tuple[int, ...]


def submit_array(
    sweep: Sweep,
    campaign_file: str | Path,
    folder: str | Path,
    *,
    count: int | None,
    options: Mapping[str, str],
) -> ArrayJob | None:
    """Submit what is left to run; None if nothing is. `options` are long options of sbatch with
    their values.

    By default as many shards as at the last submission. UserError if an array of this folder is
    in the queue.
    """
    store = ChunkStore(folder)
    place = store.folder.absolute() / "slurm"
    place.mkdir(exist_ok=True)
    last = _last(place / "array.json")
    if last is not None and _is_queued(last.job):
        raise UserError(
            f"{folder}: array job {last.job} is still in the queue; wait for it, or scancel "
            f"{last.job}"
        )
    chosen = count or (last.count if last else SHARDS)
    chosen = min(chosen, len({store.path(chunk) for chunk in sweep.chunks()}))
    shards = unfinished_shards(sweep, store, chosen)
    write_manifest(sweep, store)
    if not shards:
        return None
    script = place / "array.sh"
    replace_text(script, script_text(Path(campaign_file).absolute(), place.parent, chosen))
    array = ArrayJob(_submitted(script, sweep.name, shards, options), chosen, tuple(shards))
    replace_text(place / "array.json", json.dumps(asdict(array)))
    return array


def _submitted(script: Path, name: str, shards: Sequence[int], options: Mapping[str, str]) -> str:
    """The batch system's number of the array job."""
    answer = _run(submit_argv(script, name, shards, options))
    job = submitted_id(answer.out)
    if not answer.is_good or job is None:
        raise OutsideError(f"sbatch refused the array job: {answer.words}")
    return job


def script_text(campaign_file: Path, folder: Path, count: int) -> str:
    """What an element runs; it finds its number in the environment, and how many cores it was
    given."""
    command = [
        sys.executable,
        "-m",
        "windrow.cli.main",
        "lab",
        str(campaign_file),
        "-o",
        str(folder),
    ]
    return (
        "#!/bin/sh\n"
        "# One element of a campaign's array job. Written by windrow lab --on slurm; the next "
        "submission replaces it.\n"
        f'exec {shlex.join(command)} --shard "$SLURM_ARRAY_TASK_ID/{count}" --workers '
        f'"${{SLURM_CPUS_ON_NODE:-1}}"\n'
    )


def submit_argv(
    script: Path, name: str, shards: Sequence[int], options: Mapping[str, str]
) -> list[str]:
    """The command that submits; in a pattern of file names Slurm reads `%%` as a percent sign."""
    output = str(script.parent).replace("%", "%%") + "/%A_%a.out"
    usual = {"job-name": f"windrow-{name}", "array": ranges(shards), "output": output}
    given = (f"--{key}={value}" for key, value in (usual | dict(options)).items())
    return ["sbatch", "--parsable", *given, str(script)]


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as Slurm writes them: `1-4,7,9-10`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ",".join("-".join(map(str, run)) for run in runs)


def _is_queued(job: str) -> bool:
    """Whether the array still has elements that wait or run. A job that Slurm has forgotten has
    none."""
    answer = _run(["squeue", "--noheader", "--jobs", job, "--format", "%i"])
    if not answer.is_good and not WORDING.is_all_over(answer):
        raise OutsideError(
            f"squeue does not say whether array job {job} is in the queue: {answer.words}"
        )
    return bool(answer.out.strip())


def _run(argv: Sequence[str]) -> Answer:
    """Run a command of Slurm. It must not take settings for array elements from a job that we may
    be in ourselves."""
    env = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("SBATCH_ARRAY", "SLURM_ARRAY"))
    }
    answer = run(argv, stdin="", env=env, timeout_s=_PATIENCE_S)
    if answer.code is None:
        raise OutsideError(f"{argv[0]} did not answer within {_PATIENCE_S} s; try again later")
    return answer


def _last(path: Path) -> ArrayJob | None:
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_bytes())
        return ArrayJob(str(found["job"]), int(found["count"]), tuple(found["shards"]))
    except (OSError, ValueError, LookupError, TypeError):
        raise OutsideError(
            f"{path}: cannot be read; check with squeue whether its job is running, then delete it"
        ) from None
