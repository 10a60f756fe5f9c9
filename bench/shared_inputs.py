"""One input of many tasks on a private Slurm whose nodes have disks of their own: by copy, by
sbcast, from each other.

    python bench/shared_inputs.py [MB] [NODES] [RATE]

Without MB it is 250; 1000 take minutes. Each node is a slurmd in a mount namespace with a tmpfs.
Without RATE there is no slow file server: what is compared is what the ways cost by themselves, on
the cores of one machine. With it, the input is in a home that gives this many MB/s to all nodes
together (`slow_home`). A task says when it starts; its job says when it began.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])  # so that `tests` is a folder of the project
from tests.slurm.cluster import SlurmCluster, missing  # noqa: E402
from tests.slurm.settings import Settings  # noqa: E402

from bench.beside import affordable  # noqa: E402
from bench.network_bed import MB  # noqa: E402
from bench.slow_home import as_seen_by, slow_home, why_not  # noqa: E402
from windrow.model.volume import WAYS  # noqa: E402

WORKFLOW = """
tasks:
  - id: read-{n}
    matrix: { n: 1..%d }
    command: date +%%s.%%N > {outputs}; cksum < data >> {outputs}; readlink data >> {outputs} || true; sleep 8
    inputs: data
    outputs: out-{n}
    cores: 2
    runtime: 10m
"""  # noqa: E501


def run_once(
    slurm: SlurmCluster, folder: Path, back: Path, way: str, size: int, nodes: int
) -> tuple[float, int, int]:
    """Seconds from the start of the job to that of its last task, and bytes from home and from
    other nodes.

    What is in the folder is written in `back`, which is the same, or what is behind a slow home.
    """
    back.mkdir(exist_ok=True)
    (back / "data").write_bytes(os.urandom(size))
    (back / "w.yaml").write_text(WORKFLOW % nodes)
    (back / "windrow.toml").write_text(f'[data]\nscratch = "{slurm.place.disk}"\nshare = "{way}"\n')
    home = {
        f"XDG_{name}_HOME": str(folder / ".windrow" / name)
        for name in ("STATE", "DATA", "CONFIG", "CACHE")
    }
    command = [
        str(Path(sys.executable).parent / "windrow"),
        "run",
        "w.yaml",
        "--on",
        "slurm",
        "--strategy",
        "one-job",
    ]
    done = subprocess.run(
        command, cwd=folder, env={**slurm.env, **home}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    outs = [(back / f"out-{n}").read_text().splitlines() for n in range(1, nodes + 1)]
    assert len({out[1] for out in outs}) == 1
    assert all(len(out) == (2 if way == "copy" else 3) for out in outs), f"{way} brought nothing"
    (job,) = (folder / ".windrow" / "runs" / "w-1" / "jobs").iterdir()
    said = re.findall(
        r"node (\d+) has [^;]*; in total (\d+) bytes from home, (\d+) from",
        (job / "output").read_text(),
    )
    moved = {node: (int(home), int(peers)) for node, home, peers in said}
    began = (job / "claim").stat().st_mtime
    home_bytes = (
        sum(one for one, _ in moved.values()) if moved else size * (1 if way == "sbcast" else nodes)
    )
    return (
        max(float(out[0]) for out in outs) - began,
        home_bytes,
        sum(one for _, one in moved.values()),
    )


def main(size: int = 250, nodes: int = 8, rate: int = 0) -> int:
    lacks = (why_not() if rate else missing()) or ("it needs root" if os.geteuid() else "")
    if lacks:
        print(f"**Not shown here: {lacks}.**")
        return 0
    size = min(size, affordable(size * MB, nodes) // MB)
    behind = f", from a home of {rate} MB/s for all" if rate else ""
    print(f"{size} MB that all of {nodes} tasks read, on {nodes} nodes{behind}.\n")
    print(
        "| way | until the last task starts | bytes from home | bytes from other nodes |\n| --- "
        "| ---: | ---: | ---: |"
    )
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        top = Path(name)
        on_node = "true"
        seen = Path(name)
        back = Path(name)
        if rate:
            stack.enter_context(
                slow_home(top, rate * MB, WAYS, "mapped")
            )  # sbcast maps what it reads
            on_node = as_seen_by("$WINDROW_TEST_NODE", top, WAYS)
            seen = top / "home"
            back = top / "back"
        slurm = stack.enter_context(
            SlurmCluster(Settings(nodes=nodes, disk_mib=2 * size + 200, on_node=on_node))
        )
        for way in WAYS:
            took, home, peers = run_once(slurm, seen / way, back / way, way, size * MB, nodes)
            print(f"| {way} | {took:.1f} s | {home:,} | {peers:,} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
