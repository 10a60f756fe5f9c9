"""`windrow plan`: the cut printed is the cut that is run, and every choice is explained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from windrow.app.strategies import STRATEGIES
from windrow.cli.main import main
from windrow.formats import write_log, write_workflow
from windrow.model.hazard import Hazard
from windrow.model.site import Site
from windrow.recipes import generate_log, generate_workflow
from windrow.sim import Cluster
from windrow.trials.trial import run_trial

LOG = generate_log("lublin", seed=4, days=5, nodes=24)
WORKFLOW = generate_workflow("montage", tasks=24, work_s=20 * 3600, seed=1)
AT_S = 2 * 86400


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(LOG, "log.swf")
    write_workflow(WORKFLOW, "w.json")


def planned(capsys: pytest.CaptureFixture[str], strategy: str, *options: str) -> str:
    assert (
        main(["plan", "w.json", "--log", "log.swf", "--at", "2d", "--strategy", strategy, *options])
        == 0
    )
    return capsys.readouterr().out


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_cut_is_the_one_that_is_run(strategy: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(planned(capsys, strategy, "--json"))
    cluster = Cluster(LOG)
    cluster.advance(int(LOG.submit_s[0]) + AT_S)
    trial = run_trial(cluster, WORKFLOW, STRATEGIES[strategy], site=Site.of(24))
    assert (found["strategy"], found["at"], found["makespan_s"]) == (
        strategy,
        AT_S,
        trial.makespan_s,
    )
    assert [job["job"] for job in found["jobs"]] == list(range(len(trial.story.jobs))), (
        "as the jobs of a real run"
    )
    assert [job["nodes"] for job in found["jobs"]] == [
        job.plan.nodes for job in trial.story.jobs.values()
    ]
    assert [job["tasks"] for job in found["jobs"]] == [
        len(job.plan.tasks) for job in trial.story.jobs.values()
    ]
    assert [job["outcome"] for job in found["jobs"]] == [
        "cancelled" if job.outcome == "stopped" else job.outcome
        for job in trial.story.jobs.values()
    ]
    first = trial.story.decisions[0].decision
    assert found["jobs_now"] == found["jobs"][: len(first.jobs)]
    assert found["decisions"][0]["why"] == first.why
    assert len(found["decisions"][0]["candidates"]) == len(first.candidates)
    assert found["decisions"][0]["at"] == 0


def test_what_people_see(capsys: pytest.CaptureFixture[str]) -> None:
    out = planned(capsys, "glume", "--explain")
    found = json.loads(planned(capsys, "glume", "--json"))
    for words in ("submitted now", "considered now", "the whole run", "░ waits", "strategy glume"):
        assert words in out
    assert found["decisions"][0]["why"] in out
    for candidate in found["decisions"][0]["candidates"]:
        assert candidate["what"] in out
    assert any(line.lstrip().startswith(">") for line in out.splitlines()), "the winner is marked"
    assert "\njob 0  " in out
    assert out.count("\njob ") >= 2 + len(found["jobs"]), (
        "two tables, and a line of the timeline per job"
    )


def test_jobs_on_nodes_that_fail_have_a_risk(capsys: pytest.CaptureFixture[str]) -> None:
    assert "risk" not in planned(capsys, "giant")
    failures = ("--failures", "nodes=10d,shape=0.7")
    assert " risk\n" in planned(capsys, "giant", *failures)
    (job, *_) = json.loads(planned(capsys, "giant", "--json", *failures))["jobs_now"]
    chance = Hazard.of_mean(10 * 86400.0, 0.7).survival(job["nodes"], job["expected_run_s"])
    assert job["risk"] == pytest.approx(1 - chance)


def test_without_explain_only_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    out = planned(capsys, "glume")
    assert "considered" not in out
    assert "why: " in out


def test_many_jobs_are_cut_short(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windrow.cli.commands.plan._MOST_JOBS", 5)
    out = planned(capsys, "individual")
    assert f"and {len(WORKFLOW) - 5} more jobs: see --json" in out


def test_an_unknown_strategy_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in (["plan"], ["timeline", "-o", "page.html"]):
        assert main([*verb, "w.json", "--log", "log.swf", "--strategy", "zang"]) == 2
        assert "did you mean zhang?" in capsys.readouterr().err


@pytest.mark.parametrize("strategy", ["one-job", "glume", "foresight", "zhang"])
def test_the_longest_run_times_that_are_read_can_be_planned(
    strategy: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    tasks = "".join(
        f'<job id="{i}" name="k" runtime="{time}"/>'
        for i, time in enumerate(["1000000000"] * 2 + ["300"])
    )
    edge = '<child ref="1"><parent ref="0"/></child>'
    (tmp_path / "w.dax").write_text(f'<adag name="long">{tasks}{edge}</adag>')
    assert main(["plan", "w.dax", "--strategy", strategy, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["makespan_s"] >= 2 * 10**9


ENVIRONMENT = """\
nodes = 5
disk = "50MB"
remote = { bandwidth_bytes_s = "1MB" }
local = { bandwidth_bytes_s = "12MB" }
"""


def in_space(*options: str) -> int:
    Path("here.toml").write_text(ENVIRONMENT)
    sizes = {"depth": "3", "batch_mb": "40", "private_mb": "2", "run_s": "30"}
    write_workflow(generate_workflow("canonical", tasks=60, parameters=sizes), "c.json")
    return main(["plan", "c.json", "--environment", "here.toml", *options])


def test_a_plan_in_an_environment_takes_the_allocation_that_ends_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert in_space("--json", "--html", "page.html") == 0
    found = json.loads(capsys.readouterr().out)
    times = {one["allocation"]: one["time_s"] for one in found["allocations"]}
    assert times["All"] is None
    assert times[found["chosen"]] == min(time_s for time_s in times.values() if time_s)
    assert found["chosen"] in found["why"]
    assert (found["tasks"], found["pipelines"], found["space_bytes"]) == (60, 20, 250_000_000)
    needs = {one["allocation"]: one["least_bytes"] for one in found["allocations"]}
    assert needs == {
        "All": 280_000_000, "AllPrivate": 200_000_000, "AllBatch": 124_000_000, "Slice": 82_000_000,
        "Minimal": 44_000_000,
    }  # fmt: skip
    page = Path("page.html").read_text()
    assert "Nodes at work" in page
    assert "AllBatch" in page


def test_volumes_and_the_jobs_that_would_have_them(capsys: pytest.CaptureFixture[str]) -> None:
    Path("db").mkdir()
    Path("v.yaml").write_text("""
volumes: {genome: {from: db/, size: 600MB}, work: {scratch: 2GB}}
tasks:
  - {id: a, command: "true", mounts: [genome, work], runtime: 1h}
  - {id: b, command: "true", mounts: [work], after: a, runtime: 1h}
  - {id: c, command: "true", after: b, runtime: 1h}
""")
    given = ["plan", "v.yaml", "--log", "log.swf", "--at", "2d", "--strategy", "individual"]
    assert main([*given, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["volumes"]
    assert [(one["name"], one["size_bytes"], one["jobs"]) for one in told] == [
        ("genome", 600_000_000, [0]),
        ("work", 2_000_000_000, [0, 1]),
    ]
    assert main(given) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "volume work: 1 x 2 GB of scratch, mounted by 2 tasks, on nodes of jobs 0, 1 if scratch "
        "is set" in shown
    )


def test_without_enough_space_the_least_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert in_space("--space", "40MB") == 2
    told = capsys.readouterr()
    assert "give at least 44 MB" in told.err
    assert "not possible" in told.out
    assert in_space() == 0
    assert "ends first" in capsys.readouterr().out
    for wish in (
        ["--space", "1GB"],
        ["--space-order", "depth-first"],
        ["--scratch", "/tmp"],
    ):
        assert main(["plan", "c.json", *wish]) == 2
        assert "--environment" in capsys.readouterr().err
    assert in_space("--on", "local") == 2
    assert "choose one" in capsys.readouterr().err


def test_the_page_of_a_plan_is_a_simulated_run(capsys: pytest.CaptureFixture[str]) -> None:
    """`timeline` is its earlier name, and names the page itself."""
    given = ["w.json", "--log", "log.swf", "--at", "2d", "--strategy", "zhang"]
    assert main(["plan", *given, "--html", "run.html"]) == 0
    drawn = capsys.readouterr().out
    assert drawn.startswith(f"run.html: {WORKFLOW.name} by zhang: done in ")
    assert main(["timeline", *given]) == 0
    assert capsys.readouterr().out == drawn.replace("run.html", "timeline.html")
    assert Path("timeline.html").read_text() == Path("run.html").read_text()
    assert main(["plan", *given, "--html", "again.html", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["strategy"] == "zhang"
    assert Path("again.html").exists()
    assert main(["plan", "w.json", "--on", "local", "--html", "run.html"]) == 2
    assert "--html draws a simulated run" in capsys.readouterr().err
