"""Campaigns: the same table however they are run, and a digest that tells when they are not the
same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.waiting import children, is_alive, wait_until

from windrow.errors import UserError
from windrow.formats import write_workflow
from windrow.model.site import Site
from windrow.recipes import generate_workflow
from windrow.sim import Cluster
from windrow.story.figures import node_time
from windrow.strategies import Decision, Glume, Individual, View, Zhang
from windrow.trials.scenario import task_times
from windrow.trials.trial import run_trial
from windrow_lab.campaign.campaign import BatchRules, Campaign
from windrow_lab.campaign.sources import LogSource, WorkflowSource
from windrow_lab.campaign.store import ChunkStore
from windrow_lab.campaign.workers import CampaignProgress, run_campaigns

LOG = LogSource("small", model="lublin", seed=3, days=6, nodes=16, parameters=(("load", "0.9"),))
WORKFLOWS = tuple(
    WorkflowSource(f"{recipe}-{tasks}", recipe=recipe, tasks=tasks, work_s=40_000, seed=1)
    for recipe, tasks in (("fork-join", 20), ("montage", 30))
)
CAMPAIGN = Campaign(
    "tiny",
    logs=(LOG,),
    workflows=WORKFLOWS,
    submit_s=(86_400, 100_000, 172_800),
    strategies=(Individual(), Zhang(), Glume()),
    requests=("accurate", "actual"),
    caps=(4,),
    seeds=(0, 1),
    noise=0.2,
)


def answers(table: pa.Table) -> pa.Table:
    return table.drop_columns(["wall_s"])


def chunk_files(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in (folder / "chunks").glob("*.parquet")}


@dataclass(frozen=True, slots=True)
class Faulty:
    name: str = "faulty"

    def decide(self, view: View) -> Decision:
        if len(view.left) == 20:
            raise AssertionError("twenty tasks are too many")
        return Individual().decide(view)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    return run_campaigns([CAMPAIGN], tmp_path_factory.mktemp("reference"), workers=1)[0]


@pytest.mark.slow
def test_rows_agree_with_trials_run_by_hand(reference: pa.Table) -> None:
    log = LOG.load("actual")
    rows = reference.to_pylist()
    assert len(rows) == CAMPAIGN.trials == 2 * 2 * 3 * 3 * 2
    for row in rows[::7]:
        source = next(w for w in WORKFLOWS if w.name == row["workflow"])
        strategy = next(s for s in CAMPAIGN.strategies if s.name == row["strategy"])
        workflow = generate_workflow(source.recipe, tasks=source.tasks, work_s=40_000, seed=1)
        cluster = Cluster(log, requests=row["requests"], start_s=int(log.submit_s[0]))
        cluster.advance(int(log.submit_s[0]) + row["submit_s"])
        actual = task_times(workflow, source.name, 0.2, row["seed"], row["submit_s"])
        trial = run_trial(cluster, workflow, strategy, site=Site.of(16, cap=4), actual_s=actual)
        assert row["makespan_s"] == trial.makespan_s
        assert row["jobs"] == len(trial.story.jobs)
        assert row["used_node_s"] == actual.sum()
        assert {name: row[name] for name in node_time(trial.recorded).parts()} == node_time(
            trial.recorded
        ).parts()
        assert row["killed_jobs"] == sum(
            job.outcome == "killed" for job in trial.story.jobs.values()
        )
        assert (row["tasks"], row["error"]) == (source.tasks, None)


def test_rows_are_sorted_by_their_key(reference: pa.Table) -> None:
    names = ("log", "requests", "policy", "workflow", "cap", "strategy", "seed", "submit_s")
    keys = list(zip(*(reference.column(name).to_pylist() for name in names), strict=True))
    assert keys == sorted(set(keys))


@pytest.mark.slow
def test_two_workers_give_the_same_table(reference: pa.Table, tmp_path: Path) -> None:
    assert answers(run_campaigns([CAMPAIGN], tmp_path, workers=2)[0]).equals(answers(reference))
    written = parquet.read_table(tmp_path / "tiny.parquet")
    assert answers(written).equals(answers(reference))


PROGRAM = """
import time
from windrow_lab.campaign import rows
from windrow_lab.campaign import workers
from tests.lab.campaign.test_campaign import CAMPAIGN
import sys

if __name__ == "__main__":
    count = 0
    def watch(progress):
        print(progress.done, flush=True)
        if progress.done:
            time.sleep(60)   # long enough to be killed in
    workers.run_campaigns([CAMPAIGN], sys.argv[1], workers=int(sys.argv[2]), watch=watch)
"""


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_killed_and_continued_gives_the_same_table_and_repeats_nothing(
    count: int, reference: pa.Table, tmp_path: Path
) -> None:
    root = Path(__file__).resolve().parents[3]
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    folder = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, str(program), str(folder), str(count)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "0\n"
    assert int(process.stdout.readline()) > 0  # one chunk is done
    of_campaign = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_until(lambda: not any(map(is_alive, of_campaign)))
    before = chunk_files(folder)
    assert 1 <= len(before) <= len(CAMPAIGN.chunks())
    torn = folder / "chunks" / ".half.parquet.1234.part"
    torn.write_bytes(b"PAR1 and no more")
    seen: list[CampaignProgress] = []
    table = run_campaigns([CAMPAIGN], folder, workers=1, watch=seen.append)[0]
    assert answers(table).equals(answers(reference))
    assert seen[0].found == seen[0].done >= CAMPAIGN.chunks()[0].trials
    assert (
        before.items() <= chunk_files(folder).items()
    )  # nothing that was there has been written again
    assert not torn.exists()


@pytest.mark.slow
def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys, multiprocessing as m\n"
        "from windrow.trials.processes import _begin_worker\n"
        "def work(pipe):\n"
        "    _begin_worker(); pipe.send(os.getpid()); import time; time.sleep(60)\n"
        "if __name__ == '__main__':\n"
        "    c = m.get_context('spawn'); a, b = c.Pipe(); c.Process(target=work, "
        "args=(b,)).start()\n"
        "    print(a.recv(), flush=True); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    (tmp_path / "p.py").write_text(program)
    answer = subprocess.run(
        [sys.executable, str(tmp_path / "p.py")],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    worker = int(
        answer.stdout
    )  # run() has read to the end of the pipe, which the worker held open too
    assert not Path(f"/proc/{worker}").exists() or "Z" in Path(f"/proc/{worker}/stat").read_text()


def test_a_second_run_finds_everything(tmp_path: Path) -> None:
    small = replace(CAMPAIGN, workflows=WORKFLOWS[:1], requests=("actual",), seeds=(0,))
    first = run_campaigns([small], tmp_path, workers=1)[0]
    before = chunk_files(tmp_path)
    seen: list[CampaignProgress] = []
    again = run_campaigns([small], tmp_path, workers=1, watch=seen.append)[0]
    assert first.equals(again)  # even `wall_s`
    assert chunk_files(tmp_path) == before
    assert [(p.done, p.found) for p in seen] == [(9, 9)]


def test_campaigns_share_what_they_have_in_common(tmp_path: Path) -> None:
    one = replace(CAMPAIGN, name="one", workflows=WORKFLOWS[:1], requests=("actual",), seeds=(0,))
    both = replace(one, name="both", requests=("accurate", "actual"))
    tables = run_campaigns([one, both], tmp_path, workers=1)
    assert len(chunk_files(tmp_path)) == 2
    assert tables[1].slice(9).equals(tables[0])


def test_a_failing_trial_is_recorded_and_the_rest_goes_on(tmp_path: Path) -> None:
    campaign = replace(CAMPAIGN, strategies=(Faulty(), Glume()), requests=("actual",), seeds=(0,))
    seen: list[CampaignProgress] = []
    table = run_campaigns([campaign], tmp_path, workers=1, watch=seen.append)[0]
    errors = {
        (r["workflow"], r["strategy"]): (r["error"], r["makespan_s"] is None)
        for r in table.to_pylist()
    }
    assert errors["fork-join-20", "faulty"] == ("AssertionError: twenty tasks are too many", True)
    assert [key for key, (error, _) in errors.items() if error] == [("fork-join-20", "faulty")]
    assert seen[-1].failed == 3
    found: list[CampaignProgress] = []
    run_campaigns([campaign], tmp_path, workers=1, watch=found.append)
    assert found[-1].failed == 3  # and they are not forgotten by who continues


def test_an_interruption_keeps_what_is_finished(tmp_path: Path) -> None:
    small = replace(CAMPAIGN, strategies=(Individual(),), seeds=(0,))

    def interrupt(progress: CampaignProgress) -> None:
        if progress.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_campaigns([small], tmp_path, workers=1, watch=interrupt)
    before = chunk_files(tmp_path)
    assert len(before) == 1
    run_campaigns([small], tmp_path, workers=1)
    assert before.items() < chunk_files(tmp_path).items()
    assert len(chunk_files(tmp_path)) == 4


def test_one_campaign_at_a_time_in_a_folder(tmp_path: Path) -> None:
    with ChunkStore(tmp_path).locked(), pytest.raises(UserError, match="is running there"):
        run_campaigns([CAMPAIGN], tmp_path, workers=1)


@pytest.mark.parametrize(
    "change",
    [
        {"caps": (5,)},
        {"noise": 0.3},
        {"seeds": (0, 2)},
        {"submit_s": (86_400, 100_000, 172_801)},
        {"strategies": (Individual(), Zhang(), Glume(0.1))},
        {"requests": ("accurate",)},
        {"rules": (BatchRules(policy="easy"),)},
        {"terms": (("margin", 1.5),)},
        {"logs": (replace(LOG, seed=4),)},
        {"workflows": (replace(WORKFLOWS[0], work_s=40_001), WORKFLOWS[1])},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_digest_changes_with_the_data(change: dict[str, object]) -> None:
    assert replace(CAMPAIGN, **change).digest() != CAMPAIGN.digest()  # type: ignore[arg-type]


def test_the_digest_follows_the_content_of_files_not_their_place(tmp_path: Path) -> None:
    def digest(path: Path, seed: int) -> str:
        write_workflow(generate_workflow("montage", tasks=20, seed=seed), path)
        return replace(CAMPAIGN, workflows=(WorkflowSource("w", path=str(path)),)).digest()

    first = digest(tmp_path / "a.json", 1)
    assert digest(tmp_path / "b.json", 1) == first
    assert digest(tmp_path / "a.json", 2) != first


@pytest.mark.slow
def test_the_digest_is_the_same_in_every_process() -> None:
    root = Path(__file__).resolve().parents[3]
    program = "from tests.lab.campaign.test_campaign import CAMPAIGN; print(CAMPAIGN.digest())"
    env = os.environ | {"PYTHONHASHSEED": "12345"}
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=root, env=env, capture_output=True, check=True
    )
    assert answer.stdout.decode().strip() == CAMPAIGN.digest()


def test_noise_is_log_normal_and_the_same_for_every_strategy() -> None:
    workflow = generate_workflow("fork-join", tasks=4000, work_s=4e8, seed=1)
    exact = task_times(workflow, "w", 0, 0, 0)
    drawn = np.log(task_times(workflow, "w", 0.5, 7, 60) / exact)
    assert abs(drawn.mean()) < 4 * 0.5 / np.sqrt(4000)
    assert abs(drawn.std() - 0.5) < 0.03
    assert np.array_equal(
        task_times(workflow, "w", 0.5, 7, 60), task_times(workflow, "w", 0.5, 7, 60)
    )
    assert not np.array_equal(
        task_times(workflow, "w", 0.5, 7, 60), task_times(workflow, "w", 0.5, 8, 60)
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"workflows": ()}, "workflows is empty"),
        ({"strategies": (Zhang(), Zhang(sizing=False))}, "zhang occurs twice in strategies"),
        ({"requests": ("exact",)}, "kind of requests"),
        ({"noise": 0.0}, "several seeds"),
        ({"caps": (0,)}, "caps from 1"),
    ],
)
def test_what_makes_no_campaign_is_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(UserError, match=words):
        replace(CAMPAIGN, **change)  # type: ignore[arg-type]


def test_no_worker_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="at least 1 worker"):
        run_campaigns([CAMPAIGN], tmp_path, workers=0)
