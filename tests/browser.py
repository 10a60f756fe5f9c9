"""A real browser for tests: headless Chromium, driven by the WebDriver protocol (W3C) over http,
with the standard library alone.

One browser serves a process of tests; each test gets it with its own empty page. It reaches no
network. Tests are skipped where Chromium or its driver is missing, and say so.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import PATIENCE_S

MISSING = "no browser"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


class Browser:
    """One window."""

    def __init__(self, address: str, session: str) -> None:
        self._base = f"{address}/session/{session}"

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return _call(method, f"{self._base}/{path}", body)

    def open(self, address: str) -> None:
        """Load a page, whole."""
        self._call("POST", "url", {"url": address})

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script in the page returns; promises are waited for."""
        return self._call("POST", "execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script: str, *arguments: Any) -> Any:
        """Wait until an expression is true in the page; what it is then."""
        end = time.monotonic() + PATIENCE_S
        while True:
            found = self.run(f"return ({script});", *arguments)
            if found:
                return found
            assert time.monotonic() < end, f"it did not become true: {script}"
            time.sleep(0.02)

    def element(self, css: str) -> dict[str, str]:
        """The first element that a selector names."""
        found: dict[str, str] = self._call(
            "POST", "element", {"using": "css selector", "value": css}
        )
        return found

    def click(self, css: str) -> None:
        """Click with the mouse, as a person does; again if the page was just drawing it anew."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._call("POST", f"element/{self.element(css)[_ELEMENT]}/click", {})
                return
            except AssertionError as error:
                if "stale element" not in str(error) or time.monotonic() > end:
                    raise

    def type(self, css: str, text: str) -> None:
        """Press keys while an element has the focus."""
        self._call("POST", f"element/{self.element(css)[_ELEMENT]}/value", {"text": text})

    def size(self, width: int, height: int) -> None:
        """Of the page, in pixels."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.command("Emulation.setDeviceMetricsOverride", **metrics)

    def command(self, name: str, **parameters: Any) -> Any:
        """One of the commands of Chromium's own protocol."""
        return self._call("POST", "goog/cdp/execute", {"cmd": name, "params": parameters})

    def dark(self, *, on: bool) -> None:
        """Whether the reader prefers dark pages."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if on else "light"}
        self.command("Emulation.setEmulatedMedia", features=[feature])

    def scripts(self, *, on: bool) -> None:
        """Whether pages may run scripts."""
        self.command("Emulation.setScriptExecutionDisabled", value=not on)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        """Save a screenshot, of the whole page if that is wanted."""
        found = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    def picture_of(self, path: Path, first: str, last: str, margin: int = 12) -> None:
        """Save what is between the top of the one element and the bottom of the other."""
        top, bottom = self.run(
            "const box = (css) => document.querySelector(css).getBoundingClientRect();"
            "return [box(arguments[0]).top + scrollY, box(arguments[1]).bottom + scrollY];",
            first,
            last,
        )
        width = self.run("return document.documentElement.clientWidth;")
        clip = {"x": 0, "y": top - margin, "width": width, "height": bottom - top + 2 * margin}
        found = self.command(
            "Page.captureScreenshot",
            format="png",
            captureBeyondViewport=True,
            clip={**clip, "scale": 1},
        )
        path.write_bytes(base64.b64decode(found["data"]))

    def errors(self) -> list[str]:
        """What the page complained of since this was asked last."""
        found = self._call("POST", "se/log", {"type": "browser"})
        return [one["message"] for one in found if one["level"] == "SEVERE"]

    def quit(self) -> None:
        """Close it."""
        _call("DELETE", self._base)


def _call(method: str, address: str, body: dict[str, Any] | None = None) -> Any:
    data = None
    if body is not None:
        data = json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(address, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode(errors="replace")[:2000]) from error


def programs() -> tuple[str, str] | None:
    """Chromium and its driver; None if one of them is missing."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if browser and driver:
        return browser, driver
    return None


@contextmanager
def opened() -> Iterator[Browser]:
    """A browser that keeps all it writes in a folder of its own; both are gone at the end."""
    found = programs()
    if found is None:
        pytest.skip(f"{MISSING}: chromium and chromedriver are not installed")
    # of a short name, for the browser makes sockets in it
    with tempfile.TemporaryDirectory(prefix="wb-", ignore_cleanup_errors=True) as name:
        yield from _opened(Path(name), found)


def _opened(folder: Path, found: tuple[str, str]) -> Iterator[Browser]:
    log = folder / "driver.log"
    home = {**os.environ, "HOME": str(folder), "TMPDIR": str(folder)}
    with log.open("wb") as out:
        driver = subprocess.Popen(
            [found[1], "--port=0"], stdout=out, stderr=out, env=home, start_new_session=True
        )
    browser = None
    try:
        address = f"http://127.0.0.1:{_port(log, lambda: driver.poll() is None)}"
        options = {
            "binary": found[0],
            "args": [*_ARGUMENTS, f"--user-data-dir={folder / 'profile'}"],
            "prefs": {"download.default_directory": str(folder)},
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        made = _call("POST", f"{address}/session", {"capabilities": {"alwaysMatch": wanted}})
        browser = Browser(address, made["sessionId"])
        yield browser
    finally:
        if browser is not None:
            with suppress(OSError, AssertionError):
                browser.quit()
        driver.terminate()
        driver.wait()


def _port(log: Path, lives: Callable[[], bool]) -> int:
    """Where the driver listens, once it says so."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = re.search(r"on port (\d+)\.", log.read_text(errors="replace"))
        if found:
            return int(found[1])
        assert lives(), log.read_text(errors="replace")
        time.sleep(0.02)
    raise AssertionError("the driver does not listen")
