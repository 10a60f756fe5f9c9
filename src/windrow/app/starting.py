"""What a new project begins with: a workflow that runs as it is, and settings to be completed."""

import os
import subprocess
from collections.abc import Mapping
from shutil import which

_PATIENCE_S = 10.0

WORKFLOW = """\
# windrow run first.yaml; every key is explained in the reference of native workflows
vars: { words: 1000 }
defaults: { runtime: 1s } # what you expect of each task; learned if you leave it out
tasks:
  - id: make-{n}
    matrix: { n: 1..3 } # or a pattern of files that exist: { sample: "reads/{}.fq" }
    command: seq {words} | shuf > {outputs}
    outputs: part-{n}.txt
  - id: sum
    command: cat {inputs} | sort -n | uniq -c | head -5 > {outputs} || true
    inputs: part-*.txt # those that other tasks write, or files that exist
    outputs: sum.txt
"""


def first_files() -> Mapping[str, str]:
    """The files, by name."""
    return {"windrow.toml": settings_text(), "first.yaml": WORKFLOW}


def settings_text() -> str:
    """A windrow.toml with the queues that there are."""
    lines = [
        "# Settings for this folder and those below; windrow config shows what counts, and why.",
        "",
        "[queues.local]                  # this machine",
        f"# cores = {os.cpu_count() or 1}                     # the most that a job uses at once",
        '# memory = "16GiB"              # likewise, by what tasks state',
    ]
    partitions = _slurm_partitions()
    if partitions:  # else it does not answer
        lines += ["", "[queues.slurm]", '# account = ""                  # who pays']
        lines += [f'# partition = "{name}"' for name in partitions[:5]]
    if which("qsub"):
        lines += ["", "[queues.pbs]", '# partition = ""                # a queue of PBS']
    lines += ["", "[run]                           # what windrow run takes by default"]
    lines += ['on = "slurm"' if partitions else '# on = "slurm"']
    return "\n".join(lines) + "\n"


def _slurm_partitions() -> list[str]:
    if not which("sinfo"):
        return []
    try:
        told = subprocess.run(
            ["sinfo", "-h", "-o", "%R"],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return list(dict.fromkeys(told.stdout.split()))
