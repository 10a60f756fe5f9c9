"""A private Slurm for the tests in this folder, started once; tests are skipped, and say why, where
none can run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.slurm.cluster import SlurmCluster, missing
from tests.slurm.home import Home, made
from tests.slurm.settings import Settings
from tests.slurm.shared import BOUND, SHARED
from tests.unit.agent.jobs import Run


@pytest.fixture(scope="session")
def slurm() -> Iterator[SlurmCluster]:
    """Eight nodes without accounting."""
    yield from _cluster(Settings())


@pytest.fixture(scope="session")
def slurm_with_accounting() -> Iterator[SlurmCluster]:
    """Eight nodes with slurmdbd and MariaDB."""
    yield from _cluster(Settings(accounting=True))


@pytest.fixture(scope="session")
def shared_site() -> Iterator[SlurmCluster]:
    """Eight nodes of three kinds that users share, with GPUs, accounts and limits (`shared`)."""
    yield from _cluster(SHARED)


@pytest.fixture
def shared(shared_site: SlurmCluster) -> Iterator[SlurmCluster]:
    """The same, empty before and after."""
    shared_site.clear()
    yield shared_site
    shared_site.clear()


@pytest.fixture(scope="module")
def bound() -> Iterator[SlurmCluster]:
    """Two shared nodes whose jobs are bound to their cores."""
    yield from _cluster(BOUND)


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """Where the ordinary user of a site works."""
    with made() as home:
        yield home


@pytest.fixture
def run(slurm: SlurmCluster, tmp_path: Path) -> Iterator[Run]:
    """A run of one job for that cluster, which is empty before and after."""
    slurm.clear()
    yield Run(tmp_path / "a run")
    slurm.clear()


def _cluster(settings: Settings) -> Iterator[SlurmCluster]:
    if reason := missing(settings.accounting):
        pytest.skip(f"no private Slurm: {reason}")
    with SlurmCluster(settings) as cluster:
        yield cluster
