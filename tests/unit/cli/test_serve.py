"""`windrow serve`: pages for the one who started it, nothing for anybody else, and what may be
done."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.browser import Browser, opened
from tests.other_user import as_nobody
from tests.waiting import PATIENCE_S, wait_until

from windrow.app.runs import RunView, find_run
from windrow.cli.main import main
from windrow.story.states import RunState

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("home")]

WORKFLOW = """
name: toy
tasks:
  - {id: good, command: "echo fine"}
  - {id: "<b>bad</b>", command: "test -e mended || { echo not yet; exit 3; }"}
"""


class Served(NamedTuple):
    """A server that runs, and what it said."""

    port: int
    token: str
    said: str

    def ask(
        self, path: str, method: str = "GET", body: object = None, **headers: str | None
    ) -> tuple[int, str]:
        """Status and text of an answer; `headers` replace those that a page of its own sends."""
        sent = {
            "Host": f"127.0.0.1:{self.port}",
            "X-Windrow-Token": self.token,
            "Content-Type": "application/json",
        }
        changed = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {**sent, **{k: v for k, v in changed.items() if v is not None}}
        for name, value in changed.items():
            if value is None:
                del sent[name]
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, sent)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


@contextmanager
def serving(*options: str) -> Iterator[Served]:
    """`windrow serve` in the folder of the test, until the end."""
    out = Path("served")
    with out.open("wb") as file:
        command = [sys.executable, "-P", "-m", "windrow.cli.main", "serve", *options]
        process = subprocess.Popen(command, stdout=file, stderr=file)
    try:
        wait_until(lambda: "Ctrl-C" in out.read_text() or process.poll() is not None)
        said = out.read_text()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/#token=(\S+)", said)
        assert found is not None, said
        yield Served(int(found[1]), found[2], said)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


@pytest.fixture
def run() -> str:
    """A run that failed, under its name."""
    Path("toy.yaml").write_text(WORKFLOW)
    assert main(["run", "toy.yaml"]) == 1
    return "toy-1"


def test_who_has_no_token_gets_an_empty_page_and_nothing_else(run: str) -> None:
    with serving() as served:
        for path in ("/", f"/runs/{run}", "/anything"):
            status, page = served.ask(path, X_Windrow_Token=None)
            assert status == 200
            assert run not in page
            assert served.token not in page
        for path in ("/page", f"/page/runs/{run}", f"/page/runs/{run}/log/0.1", "/files"):
            for token in (None, "", "wrong", served.token[:-1], f"{served.token}x", "ä"):
                latin = token if token is None else token.encode().decode("latin-1")
                assert served.ask(path, X_Windrow_Token=latin)[0] == 403
            assert served.ask(f"{path}?token={served.token}", X_Windrow_Token=None)[0] == 403
            assert served.ask(path)[0] == 200


def test_pages_of_other_sites_and_other_names_of_this_machine_are_refused(run: str) -> None:
    with serving("--control") as served:
        page = f"/page/runs/{run}"
        assert served.ask(page, Host="evil.example:80")[0] == 403
        assert served.ask(page, Origin="http://evil.example")[0] == 403
        assert served.ask(page, Origin=f"http://127.0.0.1:{served.port + 1}")[0] == 403
        assert served.ask(page, Sec_Fetch_Site="cross-site")[0] == 403
        assert served.ask("/do/cancel", "POST", {"run": run}, Origin="null")[0] == 403
        assert served.ask("/do/cancel", "POST", {"run": run}, Content_Type="text/plain")[0] == 415
        assert served.ask(page, "OPTIONS", Origin="http://evil.example")[0] == 501
        assert served.ask(page, Host="localhost:9999")[0] == 200, "as ssh forwards it"


def test_only_what_is_there_is_read(run: str) -> None:
    Path("secret").write_text("hidden")
    with serving() as served:
        status, log = served.ask(f"/page/runs/{run}/log/1.1")
        assert (status, log) == (200, "not yet\n")
        for path in (
            f"/page/runs/{run}/log/..%2f..%2f..%2f..%2fsecret",
            f"/page/runs/{run}/log/journal.sqlite",
            "/page/runs/..%2f..%2fsecret",
            "/page/runs/nothing-7",
            "/page/etc/passwd",
        ):
            assert served.ask(path)[0] == 404


def test_without_control_nothing_is_done(run: str) -> None:
    with serving() as served:
        assert served.ask("/do/resume", "POST", {"run": run})[0] == 403
        assert json.loads(served.ask("/files")[1]) == {"files": []}


def test_with_control_a_run_is_resumed_and_a_file_of_the_folder_is_started(run: str) -> None:
    with serving("--control") as served:
        assert json.loads(served.ask("/files")[1]) == {"files": ["toy.yaml"]}
        bad: list[object] = [
            {"file": "../toy.yaml"},
            {"file": "--help"},
            {"run": run, "task": "*"},
            {"run": "--version", "task": "good"},
            {},
            [],
            7,
        ]
        for body in bad:
            for what in ("start", "retry"):
                assert served.ask(f"/do/{what}", "POST", body)[0] == 400
        assert served.ask("/do/rm", "POST", {"run": run})[0] == 400
        Path("mended").touch()
        status, said = served.ask("/do/resume", "POST", {"run": run})
        assert status == 200, said
        wait_until(lambda: RunView(find_run(run)).state == RunState.COMPLETE)
        assert served.ask("/do/start", "POST", {"file": "toy.yaml"})[0] == 200


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start commands as another user")
def test_a_socket_answers_its_owner_alone(run: str) -> None:
    ask = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(60)\n"
        "s.connect(sys.argv[1]); s.sendall(b'GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')\n"
        "print(len(s.recv(100)))"
    )
    path = Path(".windrow/serve.sock").absolute()
    Path("served").touch()
    with serving("--socket"):
        wait_until(path.exists)
        assert path.stat().st_mode & 0o777 == 0o600
        mine = socket.socket(socket.AF_UNIX)
        mine.connect(str(path))
        mine.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert mine.recv(100).startswith(b"HTTP/1.1 200")
        mine.close()
        python = "/usr/bin/python3"
        if not Path(python).exists():
            pytest.skip("no Python that other users can start")
        command = [*as_nobody(), python, "-c", ask, str(path)]
        closed = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
        assert "Permission" in closed.stderr
        opened_up = [path, *path.parents]
        modes = [one.stat().st_mode & 0o7777 for one in opened_up]
        for one in opened_up:
            one.chmod(one.stat().st_mode | 0o777 if one is path else one.stat().st_mode | 0o001)
        try:
            done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)
        finally:
            for one, mode in zip(opened_up, modes, strict=True):
                one.chmod(mode)
        assert done.stdout.strip() in ("0", ""), "the kernel says who asks"
        assert "Permission" not in done.stderr, "the file system lets them in, the server does not"
    assert not path.exists()


@pytest.fixture
def browser() -> Iterator[Browser]:
    with opened() as found:
        found.size(1280, 900)
        yield found


def test_a_browser_lists_opens_and_mends_a_run(run: str, browser: Browser) -> None:
    with serving("--control") as served:
        browser.open(f"http://127.0.0.1:{served.port}/")
        browser.wait("document.querySelector('h1').textContent === 'Not open'")
        browser.open("about:blank")
        browser.open(f"http://127.0.0.1:{served.port}/#token={served.token}")
        browser.wait("document.querySelector('.runs a')")
        assert "token" not in browser.run("return location.href;")
        browser.click(".runs a")
        browser.wait("document.querySelectorAll('.table .line').length === 2")
        assert "1 failed" in browser.run("return document.querySelector('.verdict').textContent;")
        browser.click(".table .line a")
        browser.wait("document.querySelector('.task-panel h3')")
        name = browser.run("return document.querySelector('.task-panel h3').textContent;")
        assert name == "<b>bad</b>"
        Path("mended").touch()
        retry = (
            "[...document.querySelectorAll('.task-panel button')]"
            ".find((one) => one.textContent.startsWith('Run '))"
        )
        browser.run(f"{retry}.click(); {retry}.click();")
        browser.wait("document.querySelector('.verdict.t-good') !== null")
        assert RunView(find_run(run)).state == RunState.COMPLETE
        assert [one for one in browser.errors() if "403" not in one] == []


def test_a_page_on_disk_follows_a_run(browser: Browser) -> None:
    Path("slow.yaml").write_text(
        "name: slow\ntasks:\n  - {id: waits, command: 'until test -e go; do sleep 0.1; done'}\n"
    )
    assert main(["run", "slow.yaml", "--detach"]) == 0
    page = Path("live.html")
    command = [sys.executable, "-P", "-m", "windrow.cli.main", "report", "--follow"]
    follower = subprocess.Popen([*command, "--html", str(page)])
    try:
        wait_until(lambda: page.exists() and "Running" in page.read_text())
        browser.open(page.absolute().as_uri())
        browser.wait("document.querySelector('.verdict.t-going') !== null")
        Path("go").touch()
        browser.wait("document.querySelector('.verdict.t-good') !== null")
        assert follower.wait(PATIENCE_S) == 0
    finally:
        Path("go").touch()
        follower.kill()
        follower.wait()
