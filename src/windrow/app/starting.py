"""What a new project begins with: a workflow that runs as it is, and settings to be completed."""

import os
import subprocess
from collections.abc import Iterable, Mapping
from shutil import which
from textwrap import shorten

from windrow.app.doctor import Finding, examine

_PATIENCE_S = 10.0
_COLUMNS = 150
_BATCH: Mapping[str, str] = {"slurm": "sinfo", "pbs": "qsub"}
"""Batch systems, and by which program one sees that a machine has them."""

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
    """A windrow.toml with the queues that there are, as `sites --check` finds them."""
    lines = [
        "# Settings for this folder and those below; windrow config shows what counts, and why.",
        "",
        "[queues.local]                  # this machine",
        *_comments(examine("local")),
        f"# cores = {os.cpu_count() or 1}                     # the most that a job uses at once",
        '# memory = "16GiB"              # likewise, by what tasks state',
    ]
    there = [name for name, program in _BATCH.items() if which(program)]
    told = {name: list(examine(name)) for name in there}
    for name, findings in told.items():
        lines += ["", f"[queues.{name}]", *_comments(findings)]
        lines += ['# account = ""                  # who pays']
        if name == "slurm":
            lines += [f'# partition = "{one}"' for one in _slurm_partitions()[:5]]
        else:
            lines += ['# queue = ""                    # one of its queues']
    ready = [name for name, findings in told.items() if not any(one.fix for one in findings)]
    lines += ["", "[run]                           # what windrow run takes by default"]
    lines += [f'on = "{ready[0]}"' if ready else '# on = "slurm"']
    return "\n".join(lines) + "\n"


def _comments(findings: Iterable[Finding]) -> list[str]:
    """What was found of a queue, and what to do if something is wrong."""
    lines = []
    for one in findings:
        words = f"{one.what}: {one.said}" + (f"; {one.fix}" if one.fix else "")
        lines.append(f"# {shorten(words, _COLUMNS, placeholder=' ...')}")
    return lines


def _slurm_partitions() -> list[str]:
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
