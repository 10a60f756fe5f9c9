"""Tasks join a real run: one file while it runs, another when it is over, with kill -9 wherever a
test wants it."""

from __future__ import annotations

import json
import time

from tests.survival.world import WORK, World

from windrow.app.runs import RunView


def more(name: str, reads: str) -> str:
    """A file with two tasks, one behind the other; the first reads what a task of the run makes."""
    outs = [f"{name}-{i}.out" for i in range(2)]
    rows = [
        {
            "id": f"{name}-{i}",
            "command": WORK.format(work_s=0.05, out=out),
            "inputs": [read],
            "outputs": [out],
            "runtime": 1,
        }
        for i, (out, read) in enumerate(zip(outs, (f"{reads}.out", outs[0]), strict=True))
    ]
    return "\n".join(["tasks:", *(f"  - {json.dumps(row)}" for row in rows), ""])


def grow(world: World, *, kill_s: float | None) -> None:
    """`kill_s`: how long after it was asked the manager is killed. Whoever asks is killed as well,
    and asks again."""
    world.write(more("early", "first"), "early.yaml")
    world.write(more("late", "early-1"), "late.yaml")
    with world.start("run", "workflow.yaml", "--on", world.on) as manager:
        world.wait_for(world.at_gate)
        if kill_s is None:
            code, said = world.windrow("run", "--add", "early.yaml", "--json")
            assert code == 0, said
            assert '"is_added": true' in said
        else:
            with world.start("run", "--add", "early.yaml") as asker:
                world.wait_for(
                    lambda: list(world.latest.path.glob("add-*")) or asker.poll() is not None
                )
                time.sleep(kill_s)
                manager.kill()
                asker.kill()
                asker.communicate()
        world.open_gate()
        manager.communicate(timeout=200)
    if kill_s is not None:
        code, said = world.windrow("run", "--add", "early.yaml")
        assert code == 0, said
    world.check_complete(10)
    code, said = world.windrow("run", "--add", "late.yaml")
    assert code == 0, said
    world.check_complete(12)
    told = RunView(world.latest)
    assert (len(told.story.additions), told.story.strays) == (2, [])
    told.close()
