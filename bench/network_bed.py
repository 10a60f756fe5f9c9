"""Several hosts on one machine: network namespaces on a bridge, links of a given speed, a disk for each node.

    python bench/network_bed.py

A home behind 1 MB/s and nodes with links of 12 MB/s, each with a tmpfs of its own, as in Bent's figures; members of a
cooperative cache (`windrow.agent.peers`) run there as processes of their own, spoken to in JSON lines. Bytes are
counted by the home's server. Beside it stand a plain copy, and nginx as a cooperative cache (`proxy_cache`, `slice`,
consistent hashing). Needs root, `ip`, `tc` with tbf; without, it says so and ends well, with nothing shown.
"""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from windrow.agent.homes import open_home
from windrow.agent.peers import Peer, Peers

ROOT = Path(__file__).resolve().parents[1]
HOME, PORT = "10.77.0.250", 8000
KB, MB = 1000, 1_000_000


def why_not() -> str:
    """What this machine lacks for namespaces and shaped links; empty: nothing."""
    if os.geteuid() != 0:
        return "it needs root"
    if missing := [tool for tool in ("ip", "tc", "unshare") if shutil.which(tool) is None]:
        return f"{missing[0]} is not installed"
    name = f"wr{os.getpid()}"
    tries = (
        f"ip netns add {name}",
        f"ip netns exec {name} tc qdisc add dev lo root tbf rate 8mbit burst 64kb latency 1s",
    )
    done = [subprocess.run(words.split(), capture_output=True, text=True, check=False) for words in tries]
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return next((one.stderr.strip().splitlines()[-1] for one in done if one.returncode), "")


class Host:
    """A process in a namespace, spoken to in JSON lines."""

    def __init__(self, space: str, role: str, address: str) -> None:
        self.space, self.address = space, address
        begin = f"mount -t tmpfs -o size=3g,mode=700 bed /mnt && exec {sys.executable} {__file__} {role}"
        command = ["ip", "netns", "exec", space, "unshare", "-m", "sh", "-c", begin]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

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


class Bed:
    """A home and nodes. Speeds are in MB/s; 0: as fast as it goes."""

    def __init__(self, nodes: int, home_rate: float = 1.0, node_rate: float = 12.0) -> None:
        self._name = f"wr{os.getpid()}"
        self._spaces: list[str] = []
        self.hosts: list[Host] = []
        try:
            self._set_up(nodes, home_rate, node_rate)
        except BaseException:
            self.close()
            raise
        self.home, self.nodes = self.hosts[0], self.hosts[1:]

    def _set_up(self, nodes: int, home_rate: float, node_rate: float) -> None:
        self._spaces.append(f"{self._name}b")
        self._run(f"ip netns add {self._name}b")
        self._run(f"ip -n {self._name}b link add name bridge0 type bridge")
        self._run(f"ip -n {self._name}b link set bridge0 up")
        addresses = [HOME, *(f"10.77.0.{n + 1}" for n in range(nodes))]
        rates = [home_rate] + [node_rate] * nodes
        for n, address in enumerate(addresses):
            self._host(n, address, rates[n])

    def _host(self, n: int, address: str, rate: float) -> None:
        space, bridge = f"{self._name}{n}", f"{self._name}b"
        self._spaces.append(space)
        self._run(f"ip netns add {space}")
        self._run(f"ip link add e{n} netns {space} type veth peer name p{n} netns {bridge}")
        self._run(f"ip -n {bridge} link set p{n} master bridge0 up")
        self._run(f"ip -n {space} addr add {address}/24 dev e{n}")
        for device in ("lo", f"e{n}"):
            self._run(f"ip -n {space} link set {device} up")
        for where, device in ((space, f"e{n}"), (bridge, f"p{n}")) if rate else ():
            limit = f"rate {rate * 8:g}mbit burst {max(64, int(rate * 8)):d}kb latency 200ms"
            self._run(f"ip netns exec {where} tc qdisc add dev {device} root tbf {limit}")
        self.hosts.append(Host(space, "home" if n == 0 else "member", address))

    @staticmethod
    def _run(words: str) -> None:
        subprocess.run(words.split(), check=True)

    def url(self, name: str) -> str:
        return f"http://{HOME}:{PORT}/{name}"

    def files(self, sizes: dict[str, int]) -> None:
        """Let home have these."""
        self.home.ask("files", sizes)

    def members(self, rooms: Sequence[int], block: int) -> None:
        """Every node begins as a member, anew."""
        cards = [node.ask("begin", f"n{n}", rooms[n], block, node.address) for n, node in enumerate(self.nodes)]
        self.all("meet", cards)

    def all(self, *words: object) -> list[Any]:
        """The same on every node, at the same time."""
        for node in self.nodes:
            node.send(*words)
        return [node.answer() for node in self.nodes]

    def crossed(self) -> int:
        """Bytes of files that have crossed to and from home since the last call."""
        return int(self.home.ask("count"))

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
    """Files by ranges, and files that are put there; counts their bytes."""

    protocol_version = "HTTP/1.1"
    crossed, lock = 0, threading.Lock()

    def _count(self, size: int) -> None:
        with self.lock:
            HomeHandler.crossed += size

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
        self._count(end - begin)  # before it is sent: who has got it may ask at once
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
                crossed, HomeHandler.crossed = HomeHandler.crossed, 0
            tell(crossed)


class MemberProcess:
    """One node's: a member, pipelines that read and write, nginx, and a plain copy."""

    def __init__(self) -> None:
        self.peers: Peers | None = None

    def begin(self, name: str, room: int, block: int, host: str) -> object:
        if self.peers is not None:
            self.peers.close()
        self.peers = Peers("bed", bytes(32), name, Path("/mnt/peers"), room, host, block)
        return self.peers.member

    def meet(self, cards: list[Any], *only: str) -> object:
        """Know these members; with `only`, take none but these for members with room."""
        assert self.peers is not None
        members = [Peer(*card) for card in cards]
        self.peers.meet([m if not only or m.name in only else m._replace(room=0) for m in members])
        return True

    def add(self, name: str, url: str) -> object:
        assert self.peers is not None
        return self.peers.add(name, open_home(url))

    def fill(self, name: str) -> object:
        assert self.peers is not None
        begun = time.monotonic()
        self.peers.fill(name)
        return [time.monotonic() - begun, self.peers.moved]

    def scan(self, name: str, begin: int, end: int) -> object:
        assert self.peers is not None
        return len(self.peers.read(name, name, begin, end)) == end - begin

    def get(self, url: str) -> object:
        """A plain copy of a file of home, or of nginx."""
        begun = time.monotonic()
        subprocess.run(["curl", "-sf", "-o", "/mnt/copy", url], check=True)
        return [time.monotonic() - begun, Path("/mnt/copy").stat().st_size]

    def nginx(self, text: str) -> object:
        Path("/mnt/nginx.conf").write_text(text)
        subprocess.run(["nginx", "-c", "/mnt/nginx.conf", "-e", "/mnt/nginx.log"], check=True)
        return True

    def pipelines(
        self, names: list[str], batch: list[str], piece: int, is_cached: bool, is_local: bool, url: str
    ) -> object:
        """Stages one after the other: each reads a file of batch data and what the one before wrote, and writes."""
        assert self.peers is not None
        for name in names:
            for depth, file in enumerate(batch):
                if file and is_cached:
                    assert self.peers is not None
                    self.peers.read(file, file, 0, int(self.sizes[file]))
                elif file:
                    _fetch(f"{url}/{file}")
                if depth and piece:
                    _read(f"{name}-{depth - 1}", url, is_local)
                if depth < len(batch) - 1 and piece:
                    _write(f"{name}-{depth}", piece, url, is_local)
            _write(f"{name}-out", 10, url, False)
        return True

    sizes: dict[str, int]

    def know(self, sizes: dict[str, int]) -> object:
        self.sizes = sizes
        return True


def _fetch(url: str) -> bytes:
    with urllib.request.urlopen(url) as answer:
        return bytes(answer.read())


def _read(name: str, url: str, is_local: bool) -> None:
    Path("/mnt", name).read_bytes() if is_local else _fetch(f"{url}/{name}")


def _write(name: str, size: int, url: str, is_local: bool) -> None:
    if is_local:
        Path("/mnt", name).write_bytes(bytes(size))
    else:
        urllib.request.urlopen(urllib.request.Request(f"{url}/{name}", data=bytes(size), method="PUT")).close()


def be_member() -> None:
    member = MemberProcess()
    for what, *given in lines():
        tell(getattr(member, what)(*given))


# What is shown


def scoping(made: Bed, share: float, width: int, size: int) -> list[tuple[str, int, int, float]]:
    """Figure 3.3: for each configuration bytes that crossed, bytes that arithmetic gives, and seconds."""
    depth, block = 4, 16 * 1024
    batch = int(share * size) // depth
    piece = int((1 - share) * size) // (2 * (depth - 1))
    b, p, e = depth * batch, 2 * (depth - 1) * piece, 10
    sizes = {f"batch{d}": batch for d in range(depth)} if batch else {}
    made.files(sizes)
    found = []
    arithmetic = {
        "remote": width * (b + p + e),
        "localised": width * (b + e),
        "cached": b + width * (p + e),
        "both": b + width * e,
    }
    for way, expected in arithmetic.items():
        is_cached, is_local = way in ("cached", "both"), way in ("localised", "both")
        made.members([10 * MB] * len(made.nodes), block)
        made.all("know", sizes)
        for name in sizes if is_cached else ():
            made.all("add", name, made.url(name))
        made.crossed()
        begun = time.monotonic()
        for n, node in enumerate(made.nodes):
            names = [f"p{k}" for k in range(n, width, len(made.nodes))]
            node.send("pipelines", names, list(sizes) or [""] * depth, piece, is_cached, is_local, made.url("")[:-1])
        for node in made.nodes:
            node.answer()
        found.append((way, made.crossed(), expected, time.monotonic() - begun))
    return found


def orders(made: Bed, volume: int, order: str, rounds: int, room: int, block: int) -> float:
    """Figure 3.4: how often each of four volumes of this many blocks crosses; every node scans each of them in step."""
    made.files({"all": 4 * volume * block})
    made.members([room * block] * len(made.nodes), block)
    made.all("add", "all", made.url("all"))
    made.crossed()
    turns = [d for _ in range(rounds) for d in range(4)]
    for d in turns if order == "depth-first" else sorted(turns):
        made.all("scan", "all", d * volume * block, (d + 1) * volume * block)
    return made.crossed() / (4 * volume * block)


NGINX = """\
daemon on; user root; worker_processes 1; pid /mnt/nginx.pid; error_log /mnt/nginx.log;
events { worker_connections 512; }
http {
  access_log off; sendfile on; tcp_nopush on; client_body_temp_path /mnt/b; proxy_temp_path /mnt/t;
  fastcgi_temp_path /mnt/f; uwsgi_temp_path /mnt/u; scgi_temp_path /mnt/s;
  proxy_cache_path /mnt/primary keys_zone=p:4m max_size=2g; proxy_cache_path /mnt/secondary keys_zone=s:4m max_size=2g;
  upstream members { hash $uri$slice_range consistent; %s }
  server { listen 8080; location / { slice 4m; proxy_cache s; proxy_cache_key $uri$slice_range;
    proxy_set_header Range $slice_range; proxy_cache_valid 200 206 1h; proxy_cache_lock on;
    proxy_pass http://members; } }
  server { listen 8081; location / { proxy_cache p; proxy_cache_key $uri$http_range; proxy_set_header Range $http_range;
    proxy_cache_valid 200 206 1h; proxy_cache_lock on; proxy_pass http://%s:%d; } }
}
"""


def with_nginx(made: Bed) -> None:
    servers = " ".join(f"server {node.address}:8081;" for node in made.nodes)
    made.all("nginx", NGINX % (servers, HOME, PORT))


def beside_nginx(rate: float, size: int, times: int = 5) -> tuple[float, float]:
    """MB/s of one node from another that has it all: ours and nginx's, the best of some, in turn. Home is not asked."""
    with bed(2, home_rate=0, node_rate=rate) as made:
        made.files({"data": size})
        with_nginx(made)
        ours, theirs = list[float](), list[float]()
        reader, peer = made.nodes
        peer.ask("get", "http://127.0.0.1:8080/data")  # warms it
        for _ in range(times):
            made.members([size * 2] * 2, 4 << 20)
            cards = [node.ask("begin", f"n{n}", size * 2, 4 << 20, node.address) for n, node in enumerate(made.nodes)]
            made.all("meet", cards, "n1")
            made.all("add", "data", made.url("data"))
            peer.ask("fill", "data")
            took, moved = reader.ask("fill", "data")
            assert moved == {"peers": size}, moved
            ours.append(size / took / MB)
            took, got = reader.ask("get", f"http://{peer.address}:8080/data")
            assert got == size
            theirs.append(size / took / MB)
    return max(ours), max(theirs)


def everyone(nodes: int, size: int, home_rate: float) -> list[tuple[str, float, int]]:
    """All nodes want one file, as a plain copy, by nginx, by us: seconds until the last has it, bytes that crossed."""
    found = []
    with bed(nodes, home_rate=home_rate, node_rate=0) as made:
        made.files({"data": size})
        made.members([2 * size] * nodes, 4 << 20)
        for way in ("copy", "nginx", "peers"):
            if way == "nginx":
                with_nginx(made)
            if way == "peers":
                made.all("add", "data", made.url("data"))
            made.crossed()
            begun = time.monotonic()
            if way == "peers":
                made.all("fill", "data")
            else:
                made.all("get", made.url("data") if way == "copy" else "http://127.0.0.1:8080/data")
            found.append((way, time.monotonic() - begun, made.crossed()))
    return found


def table(head: str, rows: Sequence[Sequence[object]]) -> None:
    print(f"| {head} |\n|{' --- |' * (head.count('|') + 1)}")
    for row in rows:
        print("| " + " | ".join(str(value) for value in row) + " |", flush=True)
    print(flush=True)


def main() -> int:
    if why := why_not():
        print(f"**Not shown here: {why}.**")
        return 0
    wrong: list[str] = []
    rows: list[tuple[object, ...]] = []
    with bed(4) as made:
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            for way, crossed, expected, took in scoping(made, share, 48, 240_000):
                rows.append((way, f"{share:.0%}", f"{crossed:,}", f"{expected:,}", f"{took:.1f} s"))
                wrong += [f"figure 3.3, {way}"] if crossed != expected else []
    print("Figure 3.3: 48 pipelines of 240 KB each (the figure's 100 MB, scaled), four nodes, home at 1 MB/s.\n")
    table("way | batch share | bytes to and from home | by arithmetic | took", rows)
    rows = []
    with bed(4) as made:
        for order in ("depth-first", "breadth-first"):
            counts = [orders(made, volume, order, 4, 12, 16 * 1024) for volume in (12, 16, 48, 52)]
            rows.append((order, *(f"{count:.2f}" for count in counts)))
            want = [1, 4, 4, 4] if order == "depth-first" else [1, 1, 1, 4]
            wrong += [f"figure 3.4, {order}"] if [round(count, 1) for count in counts] != want else []
    print("Figure 3.4: how often each of four volumes crosses, by its size in parts of the cooperative cache.\n")
    table("order | 25 % | 33 % | 100 % | 108 %", rows)
    if shutil.which("nginx") and shutil.which("curl"):
        rows = []
        for rate, size, least in ((0.0, 512 * MB, 0.7), (12.0, 48 * MB, 0.95)):
            ours, theirs = beside_nginx(rate, size, 5 if not rate else 2)
            rows.append(
                (
                    f"{rate:g} MB/s" if rate else "unshaped",
                    f"{ours:.0f} MB/s",
                    f"{theirs:.0f} MB/s",
                    f"{ours / theirs:.2f}",
                )
            )
            wrong += [f"nginx, {rows[-1][0]}"] if ours < least * theirs else []
        print("From one warm peer to another node's disk (tmpfs), the best of some, beside nginx and curl.\n")
        table("link | ours | nginx | share", rows)
        rows = []
        for way, took, crossed in everyone(8, 128 * MB, 100):
            rows.append((way, f"{took:.1f} s", f"{crossed:,}"))
            wrong += [f"{way}: crossed more than once"] if way != "copy" and crossed > 128 * MB + 8 else []
        print("Eight nodes want one file of 128 MB from a home of 100 MB/s; they share the cores of one machine.\n")
        table("way | until the last has it | bytes from home", rows)
    else:
        print("**nginx and curl are not installed: nothing is shown beside them.**")
    print("\n".join(f"**Wrong: {what}.**" for what in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["home"]:
        be_home()
    elif sys.argv[1:] == ["member"]:
        be_member()
    else:
        sys.exit(main())
