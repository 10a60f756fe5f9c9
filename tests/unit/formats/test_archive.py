from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from windrow.errors import OutsideError, UserError
from windrow.formats import archive
from windrow.formats.archive import ARCHIVE, content_sha256, describe, fetch, find

TEXT = (
    b"; MaxProcs: 4\n; Copyright: keep\n;  this notice\n1 0 -1 10 1 -1 -1 1 20 -1 1 1 -1 -1 "
    b"-1 -1 -1 -1\n"
)
PATH = "/l_kth_sp2/KTH-SP2-1996-2.1-cln.swf.gz"


@contextmanager
def serving(answers: dict[str, bytes], *, claim: int = 0) -> Iterator[tuple[str, list[str]]]:
    """A real web server on this machine: its address, and the paths asked for. `claim` bytes are
    promised, not sent."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = answers.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body) + claim))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def small_kth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive's table with a KTH log of one job."""
    (tmp_path / "text").write_bytes(TEXT)
    small = replace(find("KTH-SP2"), sha256=content_sha256(tmp_path / "text"))
    monkeypatch.setattr(archive, "ARCHIVE", (small, *ARCHIVE[1:]))
    (tmp_path / "text").unlink()


@pytest.mark.usefixtures("small_kth")
def test_a_log_is_downloaded_once_verified_and_reported(tmp_path: Path) -> None:
    body = gzip.compress(TEXT)
    seen: list[tuple[int, int | None]] = []
    with serving({PATH: body}) as (url, asked):
        path = fetch(
            "kth-sp2", tmp_path / "new" / "logs", base_url=url, progress=lambda *at: seen.append(at)
        )
        again = fetch("KTH-SP2-1996-2.1-cln", tmp_path / "new" / "logs", base_url=url)
    assert path == again == tmp_path / "new" / "logs" / "KTH-SP2-1996-2.1-cln.swf.gz"
    assert path.read_bytes() == body
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert asked == [PATH]
    assert seen[-1] == (len(body), len(body))


@pytest.mark.usefixtures("small_kth")
def test_a_broken_copy_is_downloaded_anew(tmp_path: Path) -> None:
    place = tmp_path / "KTH-SP2-1996-2.1-cln.swf.gz"
    place.write_bytes(gzip.compress(TEXT)[:-9])
    with serving({PATH: gzip.compress(TEXT, compresslevel=1)}) as (url, asked):
        fetch("KTH-SP2", tmp_path, base_url=url)
    assert asked == [PATH]
    assert gzip.decompress(place.read_bytes()) == TEXT


@pytest.mark.usefixtures("small_kth")
@pytest.mark.parametrize(
    "body",
    [
        gzip.compress(TEXT + b"; more\n", mtime=0),
        gzip.compress(TEXT, mtime=0)[:-9],
        b"<html>moved</html>",
        b"",
    ],
)
def test_anything_else_than_the_log_is_refused_and_not_kept(tmp_path: Path, body: bytes) -> None:
    with serving({PATH: body}) as (url, _), pytest.raises(OutsideError) as caught:
        fetch("KTH-SP2", tmp_path, base_url=url)
    assert str(caught.value).startswith(
        f"{url}{PATH[1:]}: the download is not KTH-SP2-1996-2.1-cln.swf.gz (wrong"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("small_kth")
def test_a_connection_that_breaks_off_is_an_error_and_nothing_is_kept(tmp_path: Path) -> None:
    cut = gzip.compress(TEXT)[:20]
    with serving({PATH: cut}, claim=1000) as (url, _), pytest.raises(OutsideError, match="KTH-SP2"):
        fetch("KTH-SP2", tmp_path, base_url=url, timeout_s=2)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_refuses_is_named_with_what_to_do(tmp_path: Path) -> None:
    with serving({}) as (url, _), pytest.raises(OutsideError) as caught:
        fetch("SDSC-BLUE", tmp_path, base_url=url)
    place = tmp_path / "SDSC-BLUE-2000-4.2-cln.swf.gz"
    assert f"{url}l_sdsc_blue/SDSC-BLUE-2000-4.2-cln.swf.gz: the server answers 404" in str(
        caught.value
    )
    assert f"download it by hand and save it as {place}" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_no_network_is_named_with_what_to_do(tmp_path: Path) -> None:
    with socket.socket() as unused:  # bound but not listening: connections are refused
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(
            OutsideError,
            match=r"cannot be reached \(.*refused\); check the connection, or download",
        ):
            fetch("CTC-SP2", tmp_path, base_url=f"http://127.0.0.1:{port}")
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_says_nothing_runs_into_the_timeout(tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(OutsideError, match="timed out"):
            fetch(
                "CTC-SP2",
                tmp_path,
                base_url=f"http://127.0.0.1:{silent.getsockname()[1]}",
                timeout_s=0.1,
            )
    assert list(tmp_path.iterdir()) == []


def test_unknown_names_and_impossible_folders_are_the_users(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="no log is called 'KTH'; known logs: KTH-SP2, CTC-SP2, SDSC-SP2, SDSC-BLUE"
    ):
        fetch("KTH", tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be created"):
        fetch("KTH-SP2", tmp_path / "file" / "logs")
    with pytest.raises(UserError, match=r"no log is called 'nothing'.*and there is no such file"):
        describe("nothing")


@pytest.mark.slow
def test_the_table_agrees_with_the_logs_themselves(logs: Path) -> None:
    """Checksums, sizes, jobs and dates against the files' own headers and lines."""
    for entry in ARCHIVE:
        path = logs / entry.file
        assert content_sha256(path) == entry.sha256
        lines = gzip.decompress(path.read_bytes()).decode().splitlines()
        header = {
            k.strip("; "): v.strip()
            for k, _, v in (line.partition(":") for line in lines if line[0] == ";")
        }
        assert sum(line[0] != ";" for line in lines) == entry.jobs
        assert int(header["MaxProcs"]) == entry.processors
        assert int(header["MaxNodes"].split()[0]) == entry.nodes
        for date, text in ((entry.start, header["StartTime"]), (entry.end, header["EndTime"])):
            _, month, day, *_, year = text.split()
            assert date == datetime.strptime(f"{day} {month} {year}", "%d %b %Y").strftime(
                "%Y-%m-%d"
            )


def test_describe_by_name_by_known_file_and_by_any_file(logs: Path, tmp_path: Path) -> None:
    by_name = describe("kth-sp2")
    assert by_name.lines()[:2] == [
        "KTH-SP2: IBM SP2 at the Royal Institute of Technology, Stockholm",
        "machine: 100 nodes (processors)",
    ]
    assert (
        by_name.url
        == "https://www.cs.huji.ac.il/labs/parallel/workload/l_kth_sp2/KTH-SP2-1996-2.1-cln.swf.gz"
    )
    (tmp_path / "renamed.swf").write_bytes(
        gzip.decompress((logs / find("KTH-SP2").file).read_bytes())
    )
    by_file = describe(tmp_path / "renamed.swf")
    assert (by_file.name, by_file.jobs, by_file.url) == ("KTH-SP2", 28_476, by_name.url)
    assert (
        "repaired: 475 jobs ran longer than requested; they are killed at their requested times"
        in by_file.lines()
    )
    (tmp_path / "mine.swf").write_bytes(TEXT)
    mine = describe(tmp_path / "mine.swf", nodes=3)
    assert (mine.name, mine.nodes, mine.jobs, mine.url) == ("mine", 3, 1, "")
    assert mine.lines()[-1] == "notice: keep this notice"
