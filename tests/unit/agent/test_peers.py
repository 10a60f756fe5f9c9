"""Members of a cooperative cache on this machine: what comes from home and from peers, and what
faults cost."""

from __future__ import annotations

import http.server
import os
import random
import re
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import wait_until

from windrow.agent.data import serving
from windrow.agent.data.homes import AUTHORIZATION, FolderHome, open_home
from windrow.agent.data.members import Group, Peer
from windrow.agent.data.peers import Peers
from windrow.agent.data.sharing import facing
from windrow.agent.data.signing import head_of, run_key
from windrow.errors import OutsideError, UserError

BLOCK, KEY = 4096, b"k" * 32
Start = Callable[..., list[Peers]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Members that know each other, by their rooms in blocks."""
    begun: list[Peers] = []

    def group(*rooms: int) -> list[Peers]:
        where = tmp_path / f"nodes {len(begun)}"
        members = [
            Peers("run", KEY, f"n{i}", where / str(i), r * BLOCK, "127.0.0.1", BLOCK)
            for i, r in enumerate(rooms)
        ]
        begun.extend(members)
        for one in members:
            one.meet([each.member for each in members])
        return members

    yield group
    for one in begun:
        one.close()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Files of 0 to 7 blocks, one in a folder with a name that must be quoted."""
    draw, folder = random.Random(3), tmp_path / "db"
    (folder / "sub dir%\udcff").mkdir(parents=True)
    for name, size in {
        "a": 7 * BLOCK,
        "b": BLOCK + 1,
        "empty": 0,
        "sub dir%\udcff/ü?#": 3 * BLOCK - 1,
    }.items():
        (folder / name).write_bytes(draw.randbytes(size))
    return folder


def content(folder: Path | None) -> dict[str, bytes]:
    assert folder is not None
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def moved(group: list[Peers], what: str) -> int:
    return sum(one.moved[what] for one in group)


def all_at_once(calls: list[Callable[[], object]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_what_fits_comes_from_home_once_and_lies_once_on_each_node(
    start: Start, data: Path
) -> None:
    group = start(20, 20, 20)
    home = FolderHome(str(data))
    assert all(one.add("db", home) for one in group)
    all_at_once([lambda one=one: one.fill("db") for one in group])  # type: ignore[misc]
    for one in group:
        assert content(one.fill("db")) == content(data)
        assert one.read("db", "a", 100, 3 * BLOCK) == (data / "a").read_bytes()[100 : 3 * BLOCK]
    total = sum(map(len, content(data).values()))
    assert moved(group, "home") == total
    assert moved(group, "peers") == moved(group, "served") == 2 * total
    assert all(0 < one.moved["home"] < total for one in group)
    kept = list((group[0].fill("db") or Path()).rglob("*"))
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o700, 0o400}


@pytest.mark.parametrize("rooms", [(6, 6, 3), (12, 0, 3)])
def test_what_fits_no_node_alone_comes_from_home_once(
    start: Start, data: Path, rooms: tuple[int, ...]
) -> None:
    """Members of unequal room, one of them without any, one that no task reads on."""
    group, whole = start(*rooms), (data / "a").read_bytes() + (data / "b").read_bytes()
    (data / "sub dir%\udcff/ü?#").unlink()  # 9 blocks are left
    assert [one.add("db", FolderHome(str(data))) for one in group] == [room >= 9 for room in rooms]
    for _ in range(2):
        for one in group[:2]:
            assert one.read("db", "a", 0, 7 * BLOCK) + one.read("db", "b", 0, BLOCK + 1) == whole
    assert moved(group, "home") == len(whole)


def test_one_fetch_is_in_flight_for_a_block_however_many_ask(start: Start, data: Path) -> None:
    group, asked, go = start(20, 20, 20), list[int](), threading.Event()

    class Slow(FolderHome):
        def read(self, name: str, begin: int, end: int) -> bytes:
            asked.append(begin)
            assert go.wait(30)
            return super().read(name, begin, end)

    for one in group:
        one.add("db", Slow(str(data / "a")))
    threading.Timer(1.2, go.set).start()  # long enough for a word that it is on its way
    all_at_once([lambda one=one: one.read("db", "a", 0, BLOCK) for one in group * 3])  # type: ignore[misc]
    assert asked == [0]


def test_a_lost_peer_costs_time_only(
    start: Start, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.agent.data.peers.SILENT_S", 0.3)
    group = start(20, 20, 20, 20)
    with socket.create_server(("127.0.0.1", 0)) as mute:  # one that listens, and never says a word
        gone = Peer("n1", "127.0.0.1", mute.getsockname()[1], "x", 20 * BLOCK)
        members = [one.member for one in group]
        group[1].close()
        group[2].close()
        for one in (group[0], group[3]):
            one.meet([members[0], gone, *members[2:]])
            one.add("db", FolderHome(str(data)))
            assert content(one.fill("db")) == content(data)
    total = sum(map(len, content(data).values()))
    assert total <= moved(group, "home") < 2 * total


def test_a_server_that_started_again_has_lost_its_volumes(start: Start, data: Path) -> None:
    one, other = start(20, 20)
    one.add("db", FolderHome(str(data)))
    assert content(one.fill("db")) == content(data)  # all from home
    assert one.moved["peers"] == 0
    (again,) = start(20)
    again.add("db", FolderHome(str(data)))
    other._members["n0"] = again.member._replace(server=one.member.server)
    other.add("db", FolderHome(str(data)))
    volume = other.volume("db")
    assert volume is not None
    block = volume.numbers["a", 0, BLOCK]
    with pytest.raises(ConnectionError):  # the volume is there; it is not the one that was meant
        other._ask(other._members["n0"], volume, block)
    assert (
        bytes(other._ask(again.member, volume, block) or b"") == (data / "a").read_bytes()[:BLOCK]
    )


def test_groups_of_caches_ask_older_ones_before_home(start: Start, data: Path) -> None:
    total, groups = (
        sum(map(len, content(data).values())),
        [start(20, 20), start(20), start(4, 20, 20)],
    )

    def follow(one: Peers, older: list[list[Peers]]) -> Peers:
        one.offer([str(data)])
        one.follow(Group([each.member for each in group], [str(data)], BLOCK) for group in older)
        return one

    every = [follow(one, groups[:place]) for place, group in enumerate(groups) for one in group]
    all_at_once([lambda one=one: one.fill(str(data)) for one in every])  # type: ignore[misc]
    assert moved(every, "home") == total
    for one in groups[0]:
        one.close()
    late = follow(start(20)[0], groups)
    assert content(late.fill(str(data))) == content(data)  # from those that are left
    assert late.moved["home"] == 0


def test_other_jobs_that_cannot_be_reached_cost_little(
    start: Start, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,), asked = start(20), list[str]()

    def refuse(member: Peer, *_: object) -> None:
        asked.append(member.name)
        raise ConnectionError

    monkeypatch.setattr(one, "_ask", refuse)
    one.follow(
        Group([one.member._replace(name=f"{g}-{i}") for i in range(9)], [str(data)], BLOCK)
        for g in range(9)
    )
    one.offer([str(data)])
    assert content(one.fill(str(data))) == content(data)
    assert 4 <= len(asked) <= 4 + 2, "three threads may be at it"


def test_another_version_of_a_file_is_never_the_answer(start: Start, data: Path) -> None:
    (one,), (other,), file = start(20), start(20), data / "a"
    for member in (one, other):
        member.offer([str(file)])
    assert one.fill(str(file)) is not None
    file.write_bytes(b"n" * file.stat().st_size)
    os.utime(file, (1, 1))
    other.follow([Group([one.member], [str(file)], BLOCK)])
    assert content(other.fill(str(file))) == {"a": file.read_bytes()}
    assert other.moved["peers"] == 0


def test_a_program_that_got_the_port_cannot_answer(start: Start, data: Path) -> None:
    one, other = start(20, 20)
    with socket.create_server(("127.0.0.1", 0)) as taken:

        def answer() -> None:
            with suppress(OSError):  # when it is shut down
                while True:
                    call = taken.accept()[0]
                    call.recv(8192)
                    call.sendall(
                        b"HTTP/1.1 206 OK\r\nContent-Length: 4096\r\nWindrow-Run: run\r\n\r\n"
                        + b"x" * 4096
                    )

        impostor = threading.Thread(target=answer, daemon=True)
        impostor.start()
        one.meet([one.member, other.member._replace(port=taken.getsockname()[1])])
        one.add("db", FolderHome(str(data)))
        assert content(one.fill("db")) == content(data)
        taken.shutdown(socket.SHUT_RDWR)
        impostor.join()


def test_what_is_offered_is_opened_when_it_is_wanted(start: Start, data: Path) -> None:
    one, other = start(20, 20)
    for member in (one, other):
        member.offer([str(data / "a"), str(data / "none")])
    assert content(one.fill(str(data / "a"))) == {"a": (data / "a").read_bytes()}
    assert 0 < other.moved["home"] < 7 * BLOCK
    assert one.fill(str(data / "b")) is None
    with pytest.raises(OutsideError, match="No such file"):
        one.fill(str(data / "none"))


def spoil(folder: Path, *places: int) -> None:
    """Flip a byte at these places of file `a` on the disk of a node."""
    with next(folder.rglob("a")).open("r+b") as file:
        for place in places:
            file.seek(place)
            (byte,) = file.read(1)
            file.seek(place)
            file.write(bytes([byte ^ 255]))


def own_blocks(member: Peers, name: str) -> list[int]:
    volume = member.volume(name)
    assert volume is not None
    return [
        n
        for n, (file, _, _) in enumerate(volume.at)
        if file == "a" and volume.deal.primary(n) == member.member.name
    ]


def test_blocks_that_go_bad_on_a_node_during_the_fetch_are_never_used(
    start: Start, data: Path, tmp_path: Path
) -> None:
    """One node's disk spoils blocks that it has read from home, before others ask for them."""
    group = start(20, 20, 20)
    for one in group:
        one.add("db", FolderHome(str(data)))
    bad, *others = group
    mine = own_blocks(bad, "db")
    assert mine
    for n in mine:
        bad.read("db", "a", n * BLOCK, n * BLOCK + BLOCK)
    spoil(tmp_path / "nodes 0" / "0", *(n * BLOCK + 7 for n in mine))
    assert [content(one.fill("db")) for one in (*others, bad)] == [content(data)] * 3
    assert bad.wrong("db") == {"its own disk": len(mine) * BLOCK}
    assert [list(one.wrong("db")) for one in others] == [["node n0 (127.0.0.1)"]] * 2


def test_a_node_that_sent_a_wrong_block_is_not_asked_again(
    start: Start, data: Path, tmp_path: Path
) -> None:
    bad, good = start(20, 20)
    for one in (bad, good):
        one.add("db", FolderHome(str(data)))
    (first, *more) = own_blocks(bad, "db")
    bad.read("db", "a", first * BLOCK, first * BLOCK + BLOCK)
    spoil(tmp_path / "nodes 0" / "0", first * BLOCK)
    begin = first * BLOCK
    assert (
        good.read("db", "a", begin, begin + BLOCK)
        == (data / "a").read_bytes()[begin : begin + BLOCK]
    )
    assert good.wrong("db") == {"node n0 (127.0.0.1)": BLOCK}
    asked = bad.moved["served"]
    assert content(good.fill("db")) == content(data)
    assert bad.moved["served"] == asked
    assert more, "there was something to ask for"


def test_what_came_wrong_is_not_passed_on(start: Start, data: Path, tmp_path: Path) -> None:
    """A node of a younger job asks one that has a block from a third, and has not looked at it."""
    (bad, between), (young,) = start(20, 20), start(20)
    for one in (bad, between, young):
        one.add("db", FolderHome(str(data)))
    n = own_blocks(bad, "db")[0]
    begin, right = n * BLOCK, (data / "a").read_bytes()[n * BLOCK : n * BLOCK + BLOCK]
    bad.read("db", "a", begin, begin + BLOCK)
    spoil(tmp_path / "nodes 0" / "0", begin)
    flight = between._flight(between._volumes["db"], n, is_for_peer=False)
    assert flight is not None
    flight.result(30)
    young.follow([Group([between.member], ["db"], BLOCK)])
    assert young.read("db", "a", begin, begin + BLOCK) == right
    assert young.wrong("db") == {}
    assert between.wrong("db") == {"node n0 (127.0.0.1)": BLOCK}


def test_a_hash_that_was_changed_on_the_way_is_no_answer(
    start: Start, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = start(20, 20)
    for each in (one, other):
        each.add("db", FolderHome(str(data)))
    monkeypatch.setattr(
        "windrow.agent.data.peers.head_of",
        lambda first, fields: head_of(
            first, fields | {"Windrow-Digest": "0" * 64} if "206" in first else fields
        ),
    )
    assert content(one.fill("db")) == content(data)
    assert one.moved["peers"] == 0


def test_a_file_that_changes_is_not_mixed(start: Start, data: Path) -> None:
    (one,) = start(20)
    one.add("db", FolderHome(str(data)))
    one.read("db", "a", 0, BLOCK)
    (data / "a").write_bytes(b"other")
    with pytest.raises(OutsideError, match="changed while it was read"):
        one.fill("db")


def test_a_full_disk_is_said(start: Start, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (one,) = start(20)
    one.add("db", FolderHome(str(data)))
    monkeypatch.setattr(
        os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(OSError, match="No space"):
        one.fill("db")


class Ranges(http.server.BaseHTTPRequestHandler):
    """A home by http: one file, ranges, a tag, and 503 at first."""

    body, tag, is_ready, seen = b"", '"1"', False, list[str | None]()

    def do_GET(self) -> None:
        Ranges.seen.append(self.headers.get("Authorization"))
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"])
        assert found
        if not Ranges.is_ready:
            Ranges.is_ready = True
            self.send_error(503)
            return
        begin, end = int(found[1]), int(found[2]) + 1
        self.send_response(206 if self.path.startswith("/db") else 200)
        self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{len(self.body)}")
        self.send_header("ETag", Ranges.tag)
        self.send_header("Content-Length", str(len(self.body[begin:end])))
        self.end_headers()
        self.wfile.write(self.body[begin:end])

    def log_message(self, *_: object) -> None: ...


def test_a_home_by_http(start: Start, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Ranges.body = (data / "a").read_bytes()
    monkeypatch.setattr("windrow.agent.data.homes._PAUSES_S", (0.01,))
    monkeypatch.setenv(AUTHORIZATION, "Bearer secret")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Ranges) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        home = open_home(f"{address}/db%20a?signature=hidden")
        (one,) = start(20)
        one.add("db", home)
        assert content(one.fill("db")) == {"db a": Ranges.body}
        assert set(Ranges.seen) == {"Bearer secret"}
        Ranges.tag = '"2"'
        with pytest.raises(OutsideError, match="changed") as told:
            home.read("db a", 0, 10)
        assert "hidden" not in str(told.value)
        with pytest.raises(OutsideError, match="ranges"):
            open_home(f"{address}/whole")
        Ranges.tag = ""
        with pytest.raises(OutsideError, match="neither the time nor a hash"):
            open_home(f"{address}/db%20a")
        server.shutdown()


def test_addresses_with_passwords_are_refused() -> None:
    with pytest.raises(UserError) as told:
        open_home("https://me:secret@example.org/db?x=1")
    assert str(told.value).startswith("https://example.org/db: its URL contains a password")
    with pytest.raises(OutsideError, match="No such file"):
        open_home("/does/not/exist")


def test_a_home_by_fsspec(start: Start, data: Path) -> None:
    pytest.importorskip("fsspec")
    from fsspec.implementations.memory import MemoryFileSystem

    for name, text in content(data).items():
        MemoryFileSystem().pipe_file(f"/lab/{name}", text)
    (one, other) = start(20, 20)
    one.add("db", open_home("memory://lab"))
    other.add("db", open_home("memory://lab"))
    assert content(one.fill("db")) == content(data)
    assert open_home("memory://lab/b").read("b", 1, 4) == (data / "b").read_bytes()[1:4]


def test_connections_that_ask_nothing_make_room(
    start: Start, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert serving._IDLE_S <= 5
    monkeypatch.setattr(serving, "_IDLE_S", 0.1)
    one, other = start(20, 20)
    for each in (one, other):
        each.add("db", FolderHome(str(data)))
    idle = [socket.create_connection((one.member.host, one.member.port), 30) for _ in range(20)]
    assert [call.recv(1) for call in idle] == [b""] * 20, "closed by the server"
    wait_until(lambda: not one._door.calls)
    assert content(other.fill("db")) == content(data)
    wait_until(lambda: not one._door.calls)  # also those of a member that has all
    (data / "a").touch()
    other.offer([str(data / "a")])
    one.offer([str(data / "a")])
    assert content(other.fill(str(data / "a"))) == {"a": (data / "a").read_bytes()}
    assert other.wrong(str(data / "a")) == {}


def test_a_home_by_fsspec_does_not_mix_versions(start: Start, data: Path) -> None:
    pytest.importorskip("fsspec")
    (one,) = start(20)
    source = f"file://{data}/a"
    one.offer([source])
    assert one.volume(source) is not None
    assert one.read(source, "a", 0, BLOCK) == (data / "a").read_bytes()[:BLOCK]
    (data / "a").write_bytes(b"B" * 7 * BLOCK)
    with pytest.raises(OutsideError, match="changed while it was read"):
        one.fill(source)


def test_a_home_by_fsspec_that_tells_no_versions_is_refused(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("fsspec")
    from fsspec import AbstractFileSystem
    from fsspec.implementations.local import LocalFileSystem

    find = LocalFileSystem.find

    def bare(self: LocalFileSystem, path: str, **more: Any) -> dict[str, Any]:
        return {
            name: {"name": name, "size": one["size"], "type": "file"}
            for name, one in find(self, path, **more).items()
        }

    monkeypatch.setattr(LocalFileSystem, "find", bare)
    monkeypatch.setattr(LocalFileSystem, "modified", AbstractFileSystem.modified)
    with pytest.raises(OutsideError, match="a: this kind of URL tells neither the time nor a hash"):
        open_home(f"file://{data}/a")


def test_without_fsspec_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    with pytest.raises(
        OutsideError, match=re.escape("s3://lab/db: ") + r".*install windrow-hpc\[data\]"
    ):
        open_home("s3://lab/db?token=1")


def test_a_run_has_one_key_that_its_user_alone_can_read(tmp_path: Path) -> None:
    keys = set[bytes]()
    all_at_once([lambda: keys.add(run_key(tmp_path / "key"))] * 8)
    assert len(keys) == 1
    assert len(keys.pop()) == 32
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    assert len(list(tmp_path.iterdir())) == 1
    (tmp_path / "key").write_text("other\n")
    with pytest.raises(ValueError, match="does not contain a key"):
        run_key(tmp_path / "key")


def test_it_listens_where_others_are_and_leaves_nothing(
    start: Start, data: Path, tmp_path: Path
) -> None:
    assert facing("127.0.0.1") == "127.0.0.1"
    (one,) = start(20)
    one.add("db", FolderHome(str(data)))
    kept = one.fill("db")
    assert kept is not None
    one.close()
    assert not kept.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", one.member.port), 5)
    wait_until(lambda: not [t for t in threading.enumerate() if t.name.startswith("windrow-fetch")])
