"""Does keeping data near the work pay where home is slow? 64 pipelines on a private Slurm, in three
ways.

    python bench/slow_home.py [SCALE]

A pipeline is two tasks: the first reads 50 MB that all pipelines read (batch) and 50 KB of its own
(endpoint), and writes 10 MB, which the second reads (pipeline data, 20 MB in all); that writes a
result of 50 KB (endpoint). Each also computes for a second: it sleeps. Home gives and takes 80 MB/s
in all. SCALE (default 10) divides sizes and this rate.

Home is a file system of this program's own, by FUSE, for each node another one of the same files.
It counts the bytes of files and lets them pass one after the other at its rate; no page cache is
before it but for copies (`sendfile`). It is no network file system: it has no latency, and looking
for files costs nothing. Nodes are a slurmd each, in a mount namespace with a tmpfs as disk, and
reach each other as fast as the machine does. The run's own folder (`.windrow`) is beside home, not
in it.

Arithmetic: bytes by Bent's formulas; for volumes also one that is copied to home to learn what a
copy takes (default). No way takes less time than home needs for its bytes, nor less than the same
run with files of one byte, today's way, started when nodes have what all pipelines read: the
greater of the two.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from ctypes.util import find_library
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

sys.path[0] = str(Path(__file__).resolve().parents[1])  # so that `tests` is a folder of the project
from tests.slurm.cluster import SlurmCluster, missing  # noqa: E402
from tests.slurm.settings import Kind, Settings  # noqa: E402

from bench.network_bed import KB, MB, lines, tell  # noqa: E402

WIDTH = 64
NODES = 8
DISK_MIB = 1000
ABOUT = """\
{width} pipelines of two tasks on {nodes} nodes: each reads 50 MB that all read, and has 20 MB of its own data between
its tasks (10 MB written and read), 0.1 MB that it must read and write, and 2 s of sleep. Home moves 80 MB/s in all;
sizes and rate are divided by {scale}. It is a FUSE file system that counts and delays bytes, and has no latency.
`local` is `--scratch`; `volumes` are a cache volume and a scratch volume for each pipeline, with `share = "peer"`.
No way takes less than home needs for its bytes, nor less than the same run with files of one byte ({empty_s:.1f} s),
begun when nodes have what all read: that is the arithmetic. For volumes it includes one copy of a scratch volume to
home, by which Windrow learns what copies cost.
"""  # noqa: E501
OTHER = "other"
_KINDS = re.compile(
    "batch|query|work|mid|out"
)  # in the names of files, and of folders for attempts at them
# of utimensat(2)
_NOW = (1 << 30) - 1
_OMIT = (1 << 30) - 2

FILES = """
tasks:
  - id: first-{n}
    matrix: { n: 1..%(width)d }
    command: >-
      sum=$(cat db/batch query-{n} | cksum); sleep 1;
      yes "$sum" | head -c %(mid)d | dd obs=1M status=none of={outputs}
    inputs: [db/batch, "query-{n}"]
    outputs: mid-{n}
    shell: bash
    runtime: 1m
  - id: second-{n}
    matrix: { n: 1..%(width)d }
    command: sum=$(cksum < mid-{n}); sleep 1; yes "$sum" | head -c %(end)d > {outputs}
    inputs: mid-{n}
    outputs: out-{n}
    shell: bash
    runtime: 1m
"""
VOLUMES = """
volumes:
  db: { from: db/, size: %(room)dB }
  work: { scratch: %(room)dB, per: "{n}" }
tasks:
  - id: first-{n}
    matrix: { n: 1..%(width)d }
    command: >-
      sum=$(cat /vol/db/batch query-{n} | cksum); sleep 1;
      yes "$sum" | head -c %(mid)d | dd obs=1M status=none of=/vol/work/mid
    inputs: query-{n}
    mounts: { /vol/db: db, /vol/work: work }
    shell: bash
    runtime: 1m
  - id: second-{n}
    matrix: { n: 1..%(width)d }
    after: first-{n}
    command: sum=$(cksum < /vol/work/mid); sleep 1; yes "$sum" | head -c %(end)d > /vol/work/out
    mounts: { /vol/work: work }
    extract: { /vol/work/out: "out-{n}" }
    shell: bash
    runtime: 1m
"""


class Sizes(NamedTuple):
    """Bytes of files: what all read, what is between the two tasks of a pipeline, and its input or
    result."""

    batch: int
    mid: int
    end: int


class Way(NamedTuple):
    """How pipelines come to their data. By arithmetic: bytes to and from home, of which some before
    all else."""

    name: str
    workflow: str
    settings: str
    crosses: int
    first: int = 0

    def least_s(self, empty_s: float, rate: float) -> float:
        """What it takes at least, if it takes this long without data."""
        return max(self.crosses / rate, empty_s + self.first / rate)


class Ran(NamedTuple):
    """What a run took, and what has crossed to and from home, by direction and kind of file."""

    took_s: float
    crossed: Counter[str]


class Home(NamedTuple):
    """The folder with its files (`back`) and its mounts, and the process that serves it."""

    folder: Path
    server: subprocess.Popen[str]

    def crossed(self) -> Counter[str]:
        """Bytes since the last call."""
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        print("[]", file=self.server.stdin, flush=True)
        return Counter(json.loads(self.server.stdout.readline()))


# Home


class SlowHome:
    """What FUSE asks, answered from a folder; `rate`: bytes of files a second, of all who read and
    write together.

    The first name of a path is that of the node that asks: so no node finds in the page cache what
    another has read.
    """

    use_ns = True

    def __init__(self, back: str, rate: float) -> None:
        self._back = back
        self._rate = rate
        self._free_at = 0.0
        self._lock = threading.Lock()
        self.crossed: Counter[str] = Counter()

    def _at(self, path: str) -> Path:
        return Path(self._back, *Path(path).parts[2:])

    def _pass(self, path: str, size: int, way: str) -> None:
        """Let this many bytes pass, after those that came before them."""
        with self._lock:
            self._free_at = max(self._free_at, time.monotonic()) + size / self._rate
            ends_at = self._free_at
            self.crossed[f"{way} {found[0] if (found := _KINDS.search(path)) else OTHER}"] += size
        time.sleep(max(0.0, ends_at - time.monotonic()))

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        data = os.pread(fh, size, offset)
        self._pass(path, len(data), "from")
        return data

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self._pass(path, len(data), "to")
        return os.pwrite(fh, data, offset)

    def open(self, path: str, flags: int) -> int:
        return os.open(self._at(path), flags & ~os.O_APPEND)  # offsets are told

    def create(self, path: str, mode: int, flags: int) -> int:
        return os.open(self._at(path), (flags & ~os.O_APPEND) | os.O_CREAT, mode)

    def release(self, _path: str, fh: int) -> None:
        os.close(fh)

    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
        found = os.lstat(self._at(path)) if fh is None else os.fstat(fh)
        names = ("st_mode", "st_ino", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks")
        times = {
            f"st_{name}": getattr(found, f"st_{name}_ns") for name in ("atime", "mtime", "ctime")
        }
        return {name: getattr(found, name) for name in names} | times

    def readdir(self, path: str, _fh: int) -> list[tuple[str, dict[str, int], int]]:
        with os.scandir(self._at(path)) as entries:
            return [(one.name, {"st_ino": one.inode()}, 0) for one in entries]

    def truncate(self, path: str, length: int, fh: int | None = None) -> None:
        os.truncate(self._at(path) if fh is None else fh, length)

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> None:
        before = os.lstat(self._at(path))
        now = time.time_ns()
        given = times or (_NOW, _NOW)
        kept = (before.st_atime_ns, before.st_mtime_ns)
        new = [{_NOW: now, _OMIT: old}.get(one, one) for one, old in zip(given, kept, strict=True)]
        os.utime(self._at(path), ns=(new[0], new[1]), follow_symlinks=False)

    def statfs(self, path: str) -> dict[str, int]:
        found = os.statvfs(self._at(path))
        return {name: getattr(found, name) for name in dir(found) if name.startswith("f_")}

    def chmod(self, path: str, mode: int) -> None:
        self._at(path).chmod(mode)

    def chown(self, path: str, uid: int, gid: int) -> None:
        os.chown(self._at(path), uid, gid, follow_symlinks=False)

    def mkdir(self, path: str, mode: int) -> None:
        self._at(path).mkdir(mode)

    def rmdir(self, path: str) -> None:
        self._at(path).rmdir()

    def unlink(self, path: str) -> None:
        self._at(path).unlink()

    def rename(self, old: str, new: str) -> None:
        self._at(old).rename(self._at(new))

    def link(self, target: str, source: str) -> None:
        os.link(self._at(source), self._at(target))

    def symlink(self, target: str, source: str) -> None:
        self._at(target).symlink_to(source)

    def readlink(self, path: str) -> str:
        return str(self._at(path).readlink())


def serve(back: str, mount: str, rate: str, *mapped: str) -> None:
    """Be home until it is unmounted; each line of the input asks what has crossed since the last
    one."""
    from mfusepy import FUSE

    home = SlowHome(back, float(rate))

    def answer() -> None:
        for _ in lines():
            crossed = home.crossed
            home.crossed = Counter()
            tell(crossed)

    threading.Thread(target=answer, daemon=True).start()
    how = {
        "direct_io": not mapped,
        "use_ino": True,
        "hard_remove": True,
        "attr_timeout": 0,
        "entry_timeout": 0,
    }
    FUSE(home, mount, foreground=True, allow_other=True, max_threads=64, max_idle_threads=64, **how)


@contextmanager
def slow_home(folder: Path, rate: float, names: Sequence[str], *mapped: str) -> Iterator[Home]:
    """Home with these folders. `mapped`: its files can be mapped, which needs a page cache, of each
    node by itself."""
    fuse = folder / "fuse"
    mount = folder / "home"
    for path in (fuse, mount, *(folder / f"runs-{name}" for name in names)):
        path.mkdir()
    for name in names:
        (folder / "back" / name / ".windrow").mkdir(parents=True)
    command = [
        sys.executable,
        __file__,
        "serve",
        str(folder / "back"),
        str(fuse),
        str(rate),
        *mapped,
    ]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        while not os.path.ismount(fuse):
            assert server.poll() is None, "home cannot be mounted"
            time.sleep(0.05)
        subprocess.run(["sh", "-c", as_seen_by("head", folder, names)], check=True)
        yield Home(folder, server)
    finally:
        for path in (*(mount / name / ".windrow" for name in names), mount, fuse):
            subprocess.run(["umount", "-l", path], check=False, stderr=subprocess.DEVNULL)
        server.terminate()
        server.wait()


def as_seen_by(node: str, folder: Path, names: Sequence[str]) -> str:
    """What to run so that a node has its home; the folders of runs are bound into it from
    beside."""
    binds = [(f"runs-{name}", f"home/{name}/.windrow") for name in names]
    return " && ".join(
        f"mount --bind {folder}/{one} {folder}/{two}"
        for one, two in [(f"fuse/{node}", "home"), *binds]
    )


# Runs


def run(slurm: SlurmCluster, home: Home, way: Way, sizes: Sizes) -> Ran:
    """The pipelines, once."""
    back = home.folder / "back" / way.name
    beside = home.folder / f"runs-{way.name}"
    (back / "db").mkdir()
    (back / "db" / "batch").write_bytes(os.urandom(sizes.batch))
    for n in range(1, WIDTH + 1):
        (back / f"query-{n}").write_bytes(os.urandom(sizes.end))
    room = 2 * (sizes.batch + sizes.mid) + MB
    (back / "w.yaml").write_text(way.workflow % {"width": WIDTH, "room": room, **sizes._asdict()})
    (back / "windrow.toml").write_text(way.settings % slurm.place.disk if way.settings else "")
    own = {f"XDG_{name}_HOME": str(beside / name) for name in ("STATE", "DATA", "CONFIG", "CACHE")}
    command = [
        str(Path(sys.executable).parent / "windrow"),
        "run",
        "w.yaml",
        "--on",
        "slurm",
        "--strategy",
        "one-job",
    ]
    home.crossed()
    begun = time.monotonic()
    done = subprocess.run(
        command,
        cwd=home.folder / "home" / way.name,
        env={**slurm.env, **own},
        capture_output=True,
        text=True,
        check=False,
    )
    took_s = time.monotonic() - begun
    assert done.returncode == 0, done.stdout + done.stderr
    moved = home.crossed()
    wrong = [
        n for n in range(1, WIDTH + 1) if (back / f"out-{n}").read_bytes() != result(back, n, sizes)
    ]
    assert not wrong, f"{way.name}: the result of pipeline {wrong[0]} is not what its commands give"
    print(f"{way.name}: {took_s:.1f} s, {dict(moved)}", file=sys.stderr, flush=True)
    return Ran(took_s, moved)


def result(back: Path, n: int, sizes: Sizes) -> bytes:
    """What a pipeline should end with: its commands, without Windrow and without home."""
    first = f'yes "$(cat db/batch query-{n} | cksum)" | head -c {sizes.mid}'
    command = f'yes "$({first} | cksum)" | head -c {sizes.end}'
    return subprocess.run(["sh", "-c", command], cwd=back, capture_output=True, check=True).stdout


def why_not() -> str:
    """What this machine lacks for it; empty: nothing."""
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        return "it needs root and /dev/fuse"
    is_there = find_library("fuse3") and find_spec("mfusepy")
    return missing() or ("" if is_there else "libfuse3 or mfusepy is not installed")


def main(scale: int = 10) -> int:
    if why := why_not():
        print(f"**Not shown here: {why}.**")
        return 0
    with suppress(OSError):  # it waits for links, and is not to wait for other programs
        os.nice(-10)
    sizes = Sizes(50 * MB // scale, 10 * MB // scale, 50 * KB // scale)
    rate = 80 * MB / scale
    own = WIDTH * 2 * sizes.end
    disk = '[data]\nscratch = "%s"\n'
    today = Way("today", FILES, "", WIDTH * (sizes.batch + 2 * sizes.mid) + own)
    ways = (
        today,
        Way("local", FILES, disk, NODES * sizes.batch + own, NODES * sizes.batch),
        Way(
            "volumes",
            VOLUMES,
            disk + 'share = "peer"\n',
            sizes.batch + own + sizes.mid,
            sizes.batch,
        ),
    )
    empty = today._replace(name="empty")
    names = [way.name for way in (empty, *ways)]
    with (
        tempfile.TemporaryDirectory() as name,
        slow_home(folder := Path(name), rate, names) as home,
    ):
        on_node = as_seen_by("$WINDROW_TEST_NODE", folder, names)
        settings = Settings(
            NODES, kinds=(Kind(NODES, 2, 1000, DISK_MIB),), disk_mib=DISK_MIB, on_node=on_node
        )
        with SlurmCluster(settings) as slurm:
            empty_s = run(slurm, home, empty, Sizes(1, 1, 1)).took_s
            ran = [run(slurm, home, way, sizes) for way in ways]
    return show(ways, ran, empty_s, rate, scale)


def show(ways: Sequence[Way], ran: Sequence[Ran], empty_s: float, rate: float, scale: int) -> int:
    """The table. 1 where something is wrong."""
    print(ABOUT.format(width=WIDTH, nodes=NODES, scale=scale, empty_s=empty_s))
    head = (
        "way | makespan | by arithmetic | faster | by arithmetic | bytes from and to home | "
        "by arithmetic"
    )
    print(f"| {head} |\n| --- |{' ---: |' * head.count('|')}")
    expected = [way.least_s(empty_s, rate) for way in ways]
    wrong = []
    for way, one, should_s in zip(ways, ran, expected, strict=True):
        times = ran[0].took_s / one.took_s
        should = expected[0] / should_s
        data = sum(size for kind, size in one.crossed.items() if not kind.endswith(OTHER))
        row = (
            f"{one.took_s:.1f} s",
            f"{should_s:.1f} s",
            f"{times:.1f}",
            f"{should:.1f}",
            f"{data:,}",
        )
        print(f"| {way.name} | {' | '.join(row)} | {way.crosses:,} |")
        wrong += [f"{way.name}: bytes"] * (data != way.crosses)
        wrong += [f"{way.name}: less than 0.8 of the factor of arithmetic"] * (times < 0.8 * should)
    other = max(
        sum(size for kind, size in one.crossed.items() if kind.endswith(OTHER)) for one in ran
    )
    print(
        "\nThe workflow file and settings, which are not counted above, were read for at most "
        f"{other:,} bytes."
    )
    print("\n".join(f"**Wrong: {what}.**" for what in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(*sys.argv[2:])
    else:
        sys.exit(main(*map(int, sys.argv[1:])))
