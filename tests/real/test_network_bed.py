"""Hosts with links of 1 and 12 MB/s on this machine: what crosses from home, to the byte, beside
the simulator.

As root, and as an ordinary user in a user namespace. `make prove` shows more
(`bench/shared_data.py`).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.loads import (
    BOTH,
    CACHED,
    LOCALISED,
    REMOTE,
    STANDALONE,
    arithmetic,
    cms,
    hartree_fock,
    scoped,
)
from bench.network_bed import MB, Host, bed, why_not
from bench.played_bed import environment, played
from bench.shared_data import BLOCK, figure_3_8, orders, replicated, run
from tests.other_user import as_nobody, python_for_all

from windrow.agent.data.replicas import ALWAYS, NEVER

HERE = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(why_not()), reason=f"no network namespaces here: {why_not()}"),
]
SAMPLE = """
from bench.loads import BOTH, REMOTE, arithmetic, scoped
from bench.network_bed import bed
from bench.shared_data import run
work = scoped(0.5, 4, 24_000, 0.01)
with bed(2) as made:
    print([run(made, work, way)[0] - arithmetic(work, way, 2) for way in (REMOTE, BOTH)])
"""


def test_figures_of_shared_data_to_the_byte_as_the_simulator_has_them() -> None:
    with bed(2) as made:
        for work in (scoped(0.5, 4, 48_000, 0.02), hartree_fock(2, 1e-5)):
            for way in (REMOTE, LOCALISED, CACHED, BOTH, STANDALONE):
                crossed, _ = run(made, work, way)
                assert crossed == arithmetic(work, way, 2), way
                assert crossed == pytest.approx(
                    played(work, way, environment(2, 1.0, 0.001)).moved, abs=1
                )
        assert orders(made, 6, "depth-first", 2, 12, 4096)[0] == 4 * 6 * 4096
        assert orders(made, 8, "depth-first", 2, 12, 4096)[0] == 2 * 4 * 8 * 4096
        _, (whole,), wrong = figure_3_8(made, cms(2, 1 / 1000, 0.1), 0.5)
        assert whole.is_exact
        assert not wrong


def test_blocks_that_one_node_spoils_are_used_by_none_and_it_is_named() -> None:
    """While they are fetched: three hosts, each with a disk of its own; one spoils all it gives."""
    with bed(3, home_rate=0.0, node_rate=0.0) as made:
        made.files({"db": 50 * BLOCK + 7})
        made.members(10 * MB, BLOCK)
        made.all("add", "db", made.url("db"))
        spoiled = made.nodes[0].ask("spoil", "db")
        assert spoiled > BLOCK
        own, *others = made.all("check", "db", made.url("db"))
    assert own == [True, {"its own disk": spoiled}]
    for is_right, wrong in others:
        assert is_right
        assert list(wrong) == ["node n0 (10.77.0.1)"]


def test_what_was_on_a_disk_that_is_wiped_is_made_again_unless_there_is_a_replica(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two nodes, a pipeline of three stages each; one disk is wiped in the last stage."""
    ask = Host.ask
    asked = list[str]()

    def wiping(self: Host, *words: object) -> Any:
        if words[0] == "stage" and words[2] == 2 and "wiped" not in asked:
            asked.append("wiped")
            ask(self, "wipe", [0.05])
        asked.append(str(words[0]))
        return ask(self, *words)

    monkeypatch.setattr(Host, "ask", wiping)
    stages = dict[str, int]()
    with bed(2) as made:
        for rule in (NEVER, ALWAYS):
            asked.clear()
            replicated(made, rule, 1000, [[], []], stage_s=0.2, width=2)
            stages[rule] = asked.count("stage")
    assert stages == {NEVER: 6 + 3, ALWAYS: 6 + 1}, "all three again, or the last"


def test_the_bed_of_an_ordinary_user() -> None:
    """In a user namespace, where the kernel lets users have one."""
    prefix, python = list[str](), sys.executable
    if os.geteuid() == 0:
        prefix, python = as_nobody(), python_for_all(dict(os.environ), "windrow.agent.data.peers")
    user = [*prefix, python, str(HERE / "bench" / "network_bed.py")]
    why = subprocess.run(
        [*user, python, "-c", ""], cwd=HERE, capture_output=True, text=True, check=False
    )
    if why.returncode:
        pytest.skip(f"no user namespaces here: {why.stderr.strip()}")
    env = {**os.environ, "PYTHONPATH": f"{HERE}:{HERE / 'src'}:{HERE / 'lab/src'}"}
    done = subprocess.run(
        [*user, python, "-c", SAMPLE],
        cwd=HERE,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[0, 0]\n", "")
