"""Several hosts on one machine: network namespaces on a bridge, links of a given speed, a disk for
each node.

A home behind 1 MB/s and nodes with links of 12 MB/s, each with a tmpfs of its own, as in Bent's
figures. What goes to home and what comes from there share its link, as all flows share the wide
area of the simulator. Members of a cooperative cache (`windrow.agent.data.peers`) run there as
processes of their own, spoken to in JSON lines; bytes are counted by the home's server. Needs
`ip`, `tc` with tbf, and root, or a kernel that lets users have namespaces.

    python bench/network_bed.py COMMAND...    runs a command where all this is allowed
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT / "src") not in sys.path:  # for a Python in which nothing is installed
    sys.path.append(str(ROOT / "src"))
from windrow.agent.data.homes import open_home  # noqa: E402
from windrow.agent.data.members import Peer  # noqa: E402
from windrow.agent.data.peers import Peers  # noqa: E402

HOME = "10.77.0.250"
PORT = 8000
KB = 1000
MB = 1_000_000
_ON_WIRE = 1514 / 1448  # of each byte of a file, with the heads of its packets


def allowed(command: Sequence[str]) -> list[str]:
    """The command, run where namespaces can be made: by an ordinary user as root of a namespace of
    its own."""
    if os.geteuid() == 0:
        return list(command)
    return ["unshare", "-rnm", "sh", "-c", f"mount -t tmpfs bed /run && exec {shlex.join(command)}"]


def why_not() -> str:
    """What this machine lacks for namespaces and shaped links; empty: nothing."""
    if missing := [
        tool for tool in ("ip", "tc", "unshare", "nsenter") if shutil.which(tool) is None
    ]:
        return f"{missing[0]} is not installed"
    name = f"wr{os.getpid()}"
    limit = "rate 8mbit burst 64kb latency 1s"
    tries = (
        f"ip netns add {name}",
        f"ip -n {name} link add wan type ifb",
        f"nsenter --net=/run/netns/{name} tc qdisc add dev wan root tbf {limit}",
    )
    command = ["sh", "-c", f"{' && '.join(tries)}; found=$?; ip netns del {name}; exit $found"]
    done = subprocess.run(allowed(command), capture_output=True, text=True, check=False)
    return (done.stderr.strip().splitlines() or ["it is refused"])[0] if done.returncode else ""


class Host:
    """A process in a namespace, spoken to in JSON lines."""

    def __init__(self, space: str, role: str, address: str) -> None:
        self.space = space
        self.address = address
        begin = (
            f"mount -t tmpfs -o size=3g,mode=700 bed /mnt && exec {sys.executable} "
            f"{__file__} {role}"
        )
        command = [*_within(space), "unshare", "-m", "sh", "-c", begin]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def send(self, *words: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"{self.space} died"
        return json.loads(line)

    def ask(self, *words: object) -> Any:
        self.send(*words)
        return self.answer()


def _within(space: str) -> list[str]:
    return ["nsenter", f"--net=/run/netns/{space}"]


class Bed:
    """A home and nodes. Speeds are of files, in MB/s; 0: as fast as it goes."""

    def __init__(self, nodes: int, home_rate: float = 1.0, node_rate: float = 12.0) -> None:
        self.home_rate = home_rate
        self.node_rate = node_rate
        self._name = f"wr{os.getpid()}"
        self._spaces: list[str] = []
        self.hosts: list[Host] = []
        try:
            self._set_up(nodes)
        except BaseException:  # Ctrl-C too: namespaces would outlive this process
            self.close()
            raise
        self.home = self.hosts[0]
        self.nodes = self.hosts[1:]

    def _set_up(self, nodes: int) -> None:
        bridge = f"{self._name}b"
        self._spaces.append(bridge)
        self._run(f"ip netns add {bridge}")
        for device, kind in (("bridge0", "bridge"), ("wan", "ifb")):
            self._run(f"ip -n {bridge} link add name {device} type {kind}")
            self._run(f"ip -n {bridge} link set {device} up")
        for n, address in enumerate([HOME, *(f"10.77.0.{n + 1}" for n in range(nodes))]):
            self._host(n, address)

    def _host(self, n: int, address: str) -> None:
        space = f"{self._name}{n}"
        bridge = f"{self._name}b"
        self._spaces.append(space)
        self._run(f"ip netns add {space}")
        self._run(f"ip link add e{n} netns {space} type veth peer name p{n} netns {bridge}")
        self._run(f"ip -n {bridge} link set p{n} master bridge0 up")
        self._run(f"ip -n {space} addr add {address}/24 dev e{n}")
        for device in ("lo", f"e{n}"):
            self._run(f"ip -n {space} link set {device} up")
        if n:
            self._shape(space, f"e{n}", self.node_rate)
            self._shape(bridge, f"p{n}", self.node_rate)
        elif self.home_rate:
            self._shape(bridge, "wan", self.home_rate)
            self._run("tc qdisc add dev p0 clsact", bridge)
            for way in ("ingress", "egress"):  # both by one device, so that they share its speed
                match = "protocol all u32 match u32 0 0 action mirred egress redirect dev wan"
                self._run(f"tc filter add dev p0 {way} {match}", bridge)
        self.hosts.append(Host(space, "member" if n else "home", address))

    def _shape(self, space: str, device: str, rate: float) -> None:
        if rate:
            limit = (
                f"rate {rate * 8000 * _ON_WIRE:.0f}kbit burst {max(16, int(rate * 8)):d}kb "
                "latency 60ms"
            )
            self._run(f"tc qdisc add dev {device} root tbf {limit}", space)

    @staticmethod
    def _run(words: str, space: str = "") -> None:
        subprocess.run([*(_within(space) if space else []), *words.split()], check=True)

    def url(self, name: str) -> str:
        return f"http://{HOME}:{PORT}/{name}"

    def files(self, sizes: Mapping[str, int]) -> None:
        """Let home have these."""
        self.home.ask("files", sizes)

    def members(self, room: int, block: int, groups: int = 1) -> None:
        """Every node starts again as a member of the one group of caches, or of one of several."""
        cards = [
            node.ask("begin", f"n{n}", room, block, node.address)
            for n, node in enumerate(self.nodes)
        ]
        size = len(cards) // groups
        for n, node in enumerate(self.nodes):
            node.ask("meet", cards[n // size * size :][:size])

    def all(self, *words: object) -> list[Any]:
        """The same on every node, at the same time."""
        for node in self.nodes:
            node.send(*words)
        return [node.answer() for node in self.nodes]

    def crossed(self) -> int:
        """Bytes of files that have crossed to and from home since the last call."""
        return sum(size for _, _, size in self.home.ask("crossed"))

    def latency_s(self) -> float:
        """What the smallest request to home takes on an idle bed."""
        self.files({"byte": 1})
        return statistics.median(
            float(self.nodes[0].ask("time", self.url("byte"))) for _ in range(15)
        )

    def close(self) -> None:
        for host in self.hosts:
            host.process.send_signal(signal.SIGKILL)
            host.process.wait()
        for space in self._spaces:
            for pid in subprocess.run(
                ["ip", "netns", "pids", space], capture_output=True, text=True, check=False
            ).stdout.split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", space], check=False)


@contextlib.contextmanager
def bed(nodes: int, **rates: float) -> Iterator[Bed]:
    made = Bed(nodes, **rates)
    try:
        yield made
    finally:
        made.close()


# What runs in the namespaces


class HomeHandler(http.server.BaseHTTPRequestHandler):
    """Files by ranges, and files that are put there; notes when, which, and how many bytes."""

    protocol_version = "HTTP/1.1"
    crossed: list[tuple[float, str, int]] = []  # noqa: RUF012  (of all handlers)
    lock = threading.Lock()

    def _count(self, size: int) -> None:
        with self.lock:
            self.crossed.append((time.monotonic(), self.path.strip("/"), size))

    def do_GET(self) -> None:
        path = Path("/mnt", self.path.strip("/"))
        size = path.stat().st_size
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        begin, end = (int(found[1]), min(size, int(found[2]) + 1)) if found else (0, size)
        self.send_response(206 if found else 200)
        self.send_header("Content-Length", str(end - begin))
        self.send_header("ETag", f'"{size}"')
        if found:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        self.end_headers()
        self._count(end - begin)  # before it is sent: the one who has it may ask at once
        with path.open("rb") as file:
            self.connection.sendfile(file, begin, end - begin)

    def do_PUT(self) -> None:
        size = int(self.headers["Content-Length"])
        Path("/mnt", self.path.strip("/")).write_bytes(self.rfile.read(size))
        self._count(size)
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


def lines() -> Iterator[list[Any]]:
    for line in sys.stdin:
        yield json.loads(line)


def tell(value: object) -> None:
    print(json.dumps(value), flush=True)


def be_home() -> None:
    server = http.server.ThreadingHTTPServer((HOME, PORT), HomeHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for what, *given in lines():
        if what == "files":
            for name, size in given[0].items():
                Path("/mnt", name).write_bytes(os.urandom(size))
            tell(True)
        else:
            with HomeHandler.lock:  # before it is told: what is asked next may come at once
                crossed = HomeHandler.crossed[:]
                HomeHandler.crossed.clear()
            tell(crossed)


class MemberProcess:
    """One node's: a member, pipelines that read, compute and write, a disk that is wiped, nginx,
    and a plain copy."""

    peers: Peers
    disk = Path("/mnt/disk")

    def begin(self, name: str, room: int, block: int, host: str) -> object:
        if hasattr(self, "peers"):
            self.peers.close()
        shutil.rmtree(self.disk, ignore_errors=True)
        self.disk.mkdir()
        self.peers = Peers("bed", bytes(32), name, Path("/mnt/peers"), room, host, block)
        return self.peers.member

    def meet(self, cards: list[Any], *only: str) -> object:
        """Know these members; with `only`, take none but these for members with room."""
        members = [Peer(*card) for card in cards]
        self.peers.meet([m if not only or m.name in only else m._replace(room=0) for m in members])
        return True

    def add(self, name: str, url: str) -> object:
        return self.peers.add(name, open_home(url))

    def fill(self, name: str) -> object:
        begun = time.monotonic()
        self.peers.fill(name)
        return [time.monotonic() - begun, self.peers.moved]

    def scan(self, name: str, begin: int, end: int) -> object:
        return len(self.peers.read(name, name, begin, end)) == end - begin

    def spoil(self, name: str) -> object:
        """Read from home what this member has to give to others, and flip a byte in each block of
        that on its disk. How many bytes the blocks have."""
        volume = self.peers.volume(name)
        assert volume is not None
        size = 0
        for n, (file, begin, end) in enumerate(volume.at):
            if volume.deal.primary(n) == self.peers.member.name:
                self.peers.read(name, file, begin, end)
                path, at = volume.place(n)
                with path.open("r+b") as kept:
                    kept.seek(at)
                    (byte,) = kept.read(1)
                    kept.seek(at)
                    kept.write(bytes([byte ^ 255]))
                size += end - begin
        return size

    def check(self, name: str, url: str) -> object:
        """Whether a volume is as home has it; and who gave other data of it, and how many bytes."""
        folder = self.peers.fill(name)
        assert folder is not None
        return [(folder / name).read_bytes() == _fetch(url), dict(self.peers.wrong(name))]

    def get(self, url: str, path: str = "/mnt/copy") -> object:
        """A plain copy of a file of home, or of nginx."""
        begun = time.monotonic()
        done = subprocess.run(
            ["curl", "-sf", "-o", path, "-w", "%{size_download}", url],
            check=True,
            capture_output=True,
        )
        return [time.monotonic() - begun, int(done.stdout)]

    def time(self, url: str) -> object:
        begun = time.monotonic()
        _fetch(url)
        return time.monotonic() - begun

    def nginx(self, text: str) -> object:
        Path("/mnt/nginx.conf").write_text(text)
        subprocess.run(["nginx", "-c", "/mnt/nginx.conf", "-e", "/mnt/nginx.log"], check=True)
        return True

    def forget(self, *paths: str) -> object:
        """Delete these, which take memory."""
        subprocess.run(["rm", "-rf", *paths], check=True)
        return True

    def pipeline(self, name: str, stages: list[list[Any]], way: dict[str, Any]) -> object:
        """Stages one after the other: each reads a batch file and what the one before left,
        computes, and writes.

        A stage: its batch file and the bytes of that, how often it reads what is before it, its
        seconds, what it writes. `way`: whether batch data are cached, and where pipeline data are
        written and read.
        """
        url = way["url"]
        for depth, (batch, size, reads, run_s, written) in enumerate(stages):
            if batch:
                self.peers.read(batch, batch, 0, size) if way["is_cached"] else _fetch(
                    f"{url}/{batch}"
                )
            for _ in range(reads if depth else 0):
                before = f"{name}-{depth - 1}"
                (self.disk / before).read_bytes() if way["reads_disk"] else _fetch(
                    f"{url}/{before}"
                )
            time.sleep(run_s)
            is_last = depth == len(stages) - 1
            if way["reads_disk"] and not is_last and written:
                (self.disk / f"{name}-{depth}").write_bytes(bytes(written))
            if (way["writes_home"] or is_last) and written:
                _put(f"{url}/{name}-{depth}", bytes(written))
        return True

    # A disk that is wiped now and then

    def wipe(self, times_s: list[float]) -> object:
        """Delete all that is on the disk at each of these times from now."""
        self.wiped = threading.Event()
        begun = time.monotonic()
        mine = self.wiped

        def wait() -> None:
            for when in times_s:
                time.sleep(max(0.0, begun + when - time.monotonic()))
                if mine is not self.wiped:
                    return
                for path in self.disk.iterdir():
                    path.unlink(missing_ok=True)
                mine.set()

        threading.Thread(target=wait, daemon=True).start()
        return True

    def stage(self, volume: str, done: int, run_s: float, size: int) -> object:
        """One task of a volume: whether what it needs is there, and stays there until it has
        written."""
        self.wiped.clear()
        if done and not (self.disk / f"{volume}.{done}").exists():
            return False
        if self.wiped.wait(run_s):
            return False
        (self.disk / f"{volume}.{done + 1}").write_bytes(bytes(size))
        return True

    def replicate(self, volume: str, done: int, url: str) -> object:
        """Copy what a task left to home: whether it was there all the time."""
        path = self.disk / f"{volume}.{done}"
        if not path.exists():
            return False
        _put(f"{url}/{path.name}", path.read_bytes())
        return path.exists()

    def restore(self, volume: str, done: int, url: str) -> object:
        (self.disk / f"{volume}.{done}").write_bytes(_fetch(f"{url}/{volume}.{done}"))
        return True


def _fetch(url: str) -> bytes:
    with urllib.request.urlopen(url) as answer:
        return bytes(answer.read())


def _put(url: str, data: bytes) -> None:
    urllib.request.urlopen(urllib.request.Request(url, data=data, method="PUT")).close()


def be_member() -> None:
    member = MemberProcess()
    for what, *given in lines():
        tell(getattr(member, what)(*given))


if __name__ == "__main__":
    if sys.argv[1:] in (["home"], ["member"]):
        with contextlib.suppress(
            OSError
        ):  # it waits for links, and is not to wait for other programs
            os.nice(-10)
        be_home() if sys.argv[1] == "home" else be_member()
    else:
        command = allowed(sys.argv[1:])
        os.execvp(command[0], command)
