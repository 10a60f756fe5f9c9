"""`windrow report --what-if`: a real run on a queue that others use, played again by every
strategy."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.waiting import wait_until

from windrow.app.runs import RunView, find_run
from windrow.app.strategies import STRATEGIES
from windrow.cli.main import main
from windrow.trials import replay

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("home")]

OTHERS = 'tasks: [{id: o, command: "until [ -e go ]; do sleep 0.05; done", nodes: 1, runtime: 20s}]'
CHAIN = """
name: chain
tasks:
  - {id: a, command: "sleep 1; echo > a", outputs: a, runtime: 2s}
  - {id: b, command: "echo > b", inputs: a, outputs: b, runtime: 1s}
"""


def answer(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    capsys.readouterr()
    assert main([*command]) == 0
    return capsys.readouterr().out


def test_a_run_is_played_again_on_the_queue_as_it_saw_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("windrow.toml").write_text('[queues.cluster]\nkind = "local"\nnodes = 2\n')
    Path("others.yaml").write_text(OTHERS)
    Path("chain.yaml").write_text(CHAIN)
    answer(capsys, "run", "others.yaml", "--on", "cluster", "--strategy", "individual", "--detach")
    wait_until(lambda: json.loads(answer(capsys, "status", "--json"))["tasks"]["running"] == 1)
    answer(capsys, "run", "chain.yaml", "--on", "cluster", "--strategy", "one-job")
    Path("go").touch()
    page = Path(answer(capsys, "report").strip())
    assert "windrow report chain-1 --what-if" in page.read_text()

    told = json.loads(answer(capsys, "report", "--what-if", "--json"))
    found = {one["strategy"]: one for one in told["what_if"]}
    assert set(found) == set(STRATEGIES)
    # One node is free, on which the tasks take two seconds and one: times are whole ones.
    assert found["one-job"]["makespan_s"] == 3
    assert found["one-job"]["jobs"] == 1
    assert found["individual"]["jobs"] == 2
    assert found["individual"]["allocated_node_s"] == 3
    text = page.read_text()
    assert "1 job of others" in text
    assert "one-job, as it really was" in text
    assert "busy nodes, of 2" in text, "the nodes of others are beneath the timeline"
    around = replay.around(RunView(find_run("chain-1")))
    assert around is not None
    assert around.others_nodes[1].max() == 1
    assert around.busy_nodes[1].max() == 2
    kept = json.loads(answer(capsys, "report", "--json"))
    assert kept["what_if"] == told["what_if"], "the answer is kept beside the run"


def test_a_run_that_saw_no_queue_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    Path("w.yaml").write_text('tasks: [{id: a, command: "true", runtime: 1s}]')
    answer(capsys, "run", "w.yaml")
    capsys.readouterr()
    assert main(["report", "--what-if"]) == 2
    assert "kept no readings of its queue" in capsys.readouterr().err
    assert "What if" not in Path(answer(capsys, "report").strip()).read_text()
