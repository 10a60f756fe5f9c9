"""Jobs that end while no process manages the run: their true ends are told at once, and recorded by
the next."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from tests.survival.world import World
from tests.waiting import wait_until

from windrow.agent.event_file import AgentLeft, Record, Tail

GATED = "name: gated\ntasks:\n" + "".join(
    f'  - {{id: t{i}, command: "echo >> begun; until [ -e go ]; do sleep 0.05; done", cores: 1, '
    f"runtime: 5s}}\n"
    for i in range(2)
)


@pytest.mark.slow
def test_jobs_end_when_their_agents_say_so(tmp_path: Path) -> None:
    world = World(tmp_path / "here", tmp_path / "elsewhere")
    (world.folder / "windrow.toml").write_text("[queues.local]\ncores = 2\n")
    world.write(GATED)
    with world.start("run", "workflow.yaml") as process:
        world.wait_for(
            lambda: (
                (world.folder / "begun").exists() and (world.folder / "begun").stat().st_size == 2
            )
        )
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert world.status()["tasks"]["finished"] == 0
    (world.folder / "go").touch()
    tail = Tail(world.latest.folder.events(0))
    words: list[Record] = []

    def is_over() -> bool:
        words.extend(tail.read())
        return tail.has_ended

    wait_until(is_over)
    (left_s,) = [word.at for word in words if isinstance(word, AgentLeft)]

    told = world.windrow("status", "--json")[1]
    assert '"finished": 2' in told
    assert '"state": "interrupted"' in told, "a manager has to take it in"
    wait_until(lambda: time.time() > left_s + 1.5)
    code, said = world.windrow("resume")
    assert code == 0, said
    status = world.status()
    assert status["state"] == "complete"
    assert status["jobs"][0]["ended_s"] == pytest.approx(left_s, abs=1e-6)
    assert status["last_s"] == pytest.approx(left_s, abs=1e-6), "it took until its last job ended"
    world.clean()
