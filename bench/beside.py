"""The cooperative cache beside nginx (`proxy_cache`, `slice`, consistent hashing), plain copies and
`sbcast`."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.network_bed import HOME, MB, PORT, Bed, bed

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
    proxy_cache_lock_timeout 1h; proxy_cache_lock_age 1h; proxy_pass http://members; } }
  server { listen 8081; location / { proxy_cache p; proxy_cache_key $uri$http_range; proxy_set_header Range $http_range;
    proxy_cache_valid 200 206 1h; proxy_cache_lock on; proxy_cache_lock_timeout 1h; proxy_cache_lock_age 1h;
    proxy_pass http://%s:%d; } }
}
"""  # noqa: E501
BLOCK = 4 << 20
Table = Callable[[str, Sequence[Sequence[object]]], None]


def with_nginx(made: Bed) -> None:
    servers = " ".join(f"server {node.address}:8081;" for node in made.nodes)
    made.all("nginx", NGINX % (servers, HOME, PORT))


def from_a_peer(rate: float, size: int, times: int = 5) -> tuple[float, float]:
    """MB/s of one node from another that has it all: ours and nginx's, the best of some, in turn.
    Home is not asked."""
    with bed(2, home_rate=0, node_rate=rate) as made:
        made.files({"data": size})
        with_nginx(made)
        ours = list[float]()
        theirs = list[float]()
        reader, peer = made.nodes
        peer.ask("get", "http://127.0.0.1:8080/data")  # warms it
        for _ in range(times):
            cards = [
                node.ask("begin", f"n{n}", size * 2, BLOCK, node.address)
                for n, node in enumerate(made.nodes)
            ]
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


def home_bytes() -> list[tuple[str, int, int, int]]:
    """Read-only loads of four nodes: bytes that home sends by arithmetic, with us, and with
    nginx."""
    sizes = {"one": 10 * MB + 7, "two": 5 * MB, "small": 100}
    loads = {
        "each node reads one file": [["one"]] * 4,
        "each node reads it three times": [["one"] * 3] * 4,
        "one node, then the others": [["one"], ["one"], ["one"], ["one"]],
        "each node reads all files": [list(sizes)] * 4,
        "each node begins elsewhere": [
            [*list(sizes)[n % 3 :], *list(sizes)[: n % 3]] for n in range(4)
        ],
        "two nodes read one file, two another": [["one"], ["one"], ["two"], ["two"]],
    }
    found = list[tuple[str, int, int, int]]()
    with bed(4, home_rate=10, node_rate=0) as made:
        for load, reads in loads.items():
            names = {
                f"{name}-{len(found)}": size for name, size in sizes.items()
            }  # new to the caches
            made.files(names)
            made.members(50 * MB, BLOCK)
            for name in names:
                made.all("add", name, made.url(name))
            if not found:
                with_nginx(made)
            crossed = list[int]()
            for way in ("peers", "nginx"):
                made.crossed()
                steps = [[name] for name in range(4)] if "then" in load else [list(range(4))]
                for who in steps:
                    for at in range(max(len(one) for one in reads)):
                        asked = [n for n in who if at < len(reads[n])]
                        for n in asked:
                            name = f"{reads[n][at]}-{len(found)}"
                            ask = (
                                ("fill", name)
                                if way == "peers"
                                else ("get", f"http://127.0.0.1:8080/{name}")
                            )
                            made.nodes[n].send(*ask)
                        for n in asked:
                            made.nodes[n].answer()
                crossed.append(made.crossed())
            wanted = {name for one in reads for name in one}
            found.append((load, sum(sizes[name] for name in wanted), crossed[0], crossed[1]))
    return found


def affordable(size: int, nodes: int) -> int:
    """As much of this size as the memory allows that is free: the disks of home and all nodes are
    in it."""
    free = int(re.findall(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text())[0]) * 1024
    return min(size, max(0, free - 3000 * MB) // int(1.3 * nodes + 1) // MB * MB)


def everyone(nodes: int, size: int, home_rate: float) -> list[tuple[str, float, int]]:
    """All nodes want one file, as a plain copy, by nginx, by us: seconds until the last has it,
    bytes that crossed."""
    found = []
    with bed(nodes, home_rate=home_rate, node_rate=0) as made:
        made.files({"data": size})
        for way in ("copy", "nginx", "peers"):
            if way == "nginx":
                with_nginx(made)
            if way == "peers":
                made.members(int(1.1 * size), BLOCK)
                made.all("add", "data", made.url("data"))
            made.crossed()
            begun = time.monotonic()
            if way == "peers":
                made.all("fill", "data")
            elif way == "nginx":  # its cache is on the disk of the node
                made.all("get", "http://127.0.0.1:8080/data", "/dev/null")
            else:
                made.all("get", made.url("data"))
            found.append((way, time.monotonic() - begun, made.crossed()))
            made.all("forget", "/mnt/copy", "/mnt/primary", "/mnt/secondary")
    return found


def beside_others(table: Table) -> list[str]:
    """What is wrong."""
    if not (shutil.which("nginx") and shutil.which("curl")):
        print("**nginx and curl are not installed: nothing is shown beside them.**\n")
        return []
    rows = list[tuple[object, ...]]()
    wrong = list[str]()
    for load, expected, ours, theirs in home_bytes():
        rows.append((load, f"{expected:,}", f"{ours:,}", f"{theirs:,}"))
        wrong += [f"nginx, {load}: bytes from home"] if not ours == theirs == expected else []
    print(
        "What home sends for read-only loads of four nodes, beside nginx as a cooperative cache.\n"
    )
    table("load | by arithmetic | ours | nginx", rows)
    rows = []
    for rate, size, least in ((0.0, 512 * MB, 0.7), (12.0, 48 * MB, 0.95)):
        our_rate, their_rate = from_a_peer(rate, size, 5 if not rate else 2)
        link = f"{rate:g} MB/s" if rate else "unshaped"
        rows.append(
            (link, f"{our_rate:.0f} MB/s", f"{their_rate:.0f} MB/s", f"{our_rate / their_rate:.2f}")
        )
        wrong += [f"nginx, {link}"] if our_rate < least * their_rate else []
    print(
        "From one warm peer to another node's disk (tmpfs), the best of some, beside nginx and "
        "curl.\n"
    )
    table("link | ours | nginx | share", rows)
    rows = []
    size = affordable(1000 * MB, 8)
    for way, took, crossed in everyone(8, size, 100):
        rows.append((way, f"{took:.1f} s", f"{crossed:,}"))
        wrong += [f"{way}: crossed more than once"] if way != "copy" and crossed != size else []
    print(
        f"Eight nodes want one file of {size // MB} MB from a home of 100 MB/s; they share the "
        "cores of one machine.\n"
    )
    table("way | until the last has it | bytes from home", rows)
    return wrong
