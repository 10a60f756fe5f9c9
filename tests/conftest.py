"""What every test may ask for, how tests are dealt to workers, and what is said of those that could
not run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import tests.examples  # noqa: F401  (the profile of all property tests)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a shell starts what is in the background. Commands that tests start would inherit it, and
    # would not hear Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)

HERE = Path(__file__).parent
DATA = Path(os.environ.get("WINDROW_DATA") or HERE.parents[1] / "shared" / "data")
FIRST = ("slurm", "survival", "real", "docs", "plugins")
"""Folders whose tests wait for daemons, clocks and commands: started first, they wait while the
others calculate."""
SLOW = ("slurm", "real", "oracle", "docs")
"""Folders of which no test is quick: they start daemons, read real logs, run every example that is
shown."""
CLUSTERS = int(os.environ.get("WINDROW_TEST_CLUSTERS") or 3)
"""Private Slurms without accounting that run side by side, where tests do; those with accounting
share one."""
NEEDS = {
    "data": (
        "no real logs",
        f"real logs and workflows are not in {DATA}: get logs with `windrow traces fetch KTH-SP2 "
        "CTC-SP2 SDSC-SP2 "
        "SDSC-BLUE --to FOLDER/swf`, then set WINDROW_DATA=FOLDER",
    ),
    "slurm": (
        "no private Slurm",
        "there is no Slurm to test with: as root on Debian or Ubuntu, tests/slurm/install",
    ),
    "snakemake": (
        "no Snakemake",
        "Snakemake is not installed for this Python: pip install -e 'plugins/snakemake[test]'",
    ),
    "browser": (
        "no browser",
        "there is no Chromium to look at pages with: as root on Debian or Ubuntu, "
        "sh tests/install-browser",
    ),
}
"""What tests are skipped for where it is missing: how the reason begins, and what to do about
it."""


@pytest.fixture(scope="session")
def logs() -> Path:
    """The folder of real logs; tests that need it are skipped, and say so, where it is missing."""
    return _data("swf") / "swf"


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real logs, workflows and other simulators' schedules; likewise."""
    return _data("swf", "dax", "wfformat", "oracle")


def _data(*parts: str) -> Path:
    if missing := [part for part in parts if not (DATA / part).is_dir()]:
        pytest.skip(f"{NEEDS['data'][0]} and workflows ({', '.join(missing)}) in {DATA}")
    return DATA


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which commands run, with a queue, a history and settings of its own."""
    monkeypatch.chdir(tmp_path)
    for name in ("STATE", "CONFIG", "DATA"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setenv("WINDROW_HISTORY", str(tmp_path / "history.sqlite"))
    return tmp_path


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deal the tests to workers that run side by side (pytest -n).

    Each private Slurm belongs to one of them; a file whose tests calculate stays whole, since they
    share what they read and made; those that wait for daemons of their own are dealt one by one.
    """
    items.sort(
        key=lambda item: FIRST.index(_folder(item)) if _folder(item) in FIRST else len(FIRST)
    )
    dealt = 0
    for item in items:
        if _folder(item) in SLOW:
            item.add_marker(pytest.mark.slow)
        if _folder(item) == "slurm":
            special = {"slurm_with_accounting", "mixed", "shared_site", "bound"}.intersection(
                getattr(item, "fixturenames", ())
            )
            item.add_marker(
                pytest.mark.xdist_group(min(special, default=f"slurm-{dealt % CLUSTERS}"))
            )
            dealt += not special
        elif _folder(item) not in FIRST:
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(HERE))))


def _folder(item: pytest.Item) -> str:
    if item.path.is_relative_to(HERE):
        return item.path.relative_to(HERE).parts[0]
    return item.path.relative_to(HERE.parent).parts[0]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Say last how many tests were skipped for what; a failure where `WINDROW_TEST_NEEDS` ("data
    slurm") names it."""
    yield
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    reasons = [str(report.longrepr) for report in reporter.stats.get("skipped", ())]
    for name, (beginning, advice) in NEEDS.items():
        if count := sum(beginning in reason for reason in reasons):
            is_needed = name in os.environ.get("WINDROW_TEST_NEEDS", "").split()
            reporter.write_line(
                f"{count} tests were skipped: {advice}", red=is_needed, yellow=not is_needed
            )
            if is_needed and session.exitstatus == pytest.ExitCode.OK:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED
