"""Shapes of workflows that real Snakefiles have, on the queue of this machine: the right files, by
just as many executions as are needed."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("snakemake", reason="no Snakemake is installed")
pytest.importorskip("snakemake_executor_plugin_windrow", reason="no Snakemake that has the plugin")

from windrow import api

PATIENCE_S = 500
ON = os.environ.get("WINDROW_TEST_ON", "local")
"""tests/slurm runs this file again, on a Slurm."""
IS_FULL = bool(os.environ.get("WINDROW_FULL"))
pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    if settings := os.environ.get("WINDROW_TEST_SETTINGS"):
        (tmp_path / "windrow.toml").write_text(settings)
    return tmp_path


def snakemake(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*more), cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def command(*more: str) -> list[str]:
    where = ("--windrow-on", ON)
    return [sys.executable, "-m", "snakemake", "--executor", "windrow", *where, "-j", "50", *more]


def executed(folder: Path) -> dict[str, int]:
    """How often each rule wrote its name into `ran`."""
    names = (folder / "ran").read_text().split()
    return {name: names.count(name) for name in sorted(set(names))}


def submitted_late(run: api.Run) -> int:
    """How many jobs came to the queue after a task had ended."""
    events = [event.what for event in run.events()]
    return events[events.index("TaskFinished") :].count("JobSubmitted")


def wait_until(holds: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


MIXED = """
localrules: middle
rule all:
    input: "total.txt", "late.txt", "script.txt", "shadowed.txt", "touched"
rule prepare:
    output: temp("prep/{i}.txt")
    shell: "echo prepare >> ran; echo {wildcards.i} > {output}"
rule square:
    input: "prep/{i}.txt"
    output: "sq/{i}.txt"
    shell: "echo square >> ran; x=$(cat {input}); echo $((x*x)) > {output}"
rule total:
    input: expand("sq/{i}.txt", i=range(4))
    output: "total.txt"
    threads: 2
    run:
        open("ran", "a").write("total\\\\n")
        open(output[0], "w").write(str(sum(int(open(f).read()) for f in input)))
rule middle:
    input: "total.txt"
    output: "middle.txt"
    shell: "echo middle >> ran; cp {input} {output}"
rule late:
    input: "middle.txt"
    output: "late.txt"
    shell: "echo late >> ran; cp {input} {output}"
rule script:
    output: "script.txt"
    log: "script.log"
    benchmark: "script.bench"
    script: "do.py"
rule shadowed:
    output: "shadowed.txt"
    shadow: "minimal"
    shell: "echo x > junk.tmp; cp junk.tmp {output}"
rule touched:
    output: touch("touched")
    shell: "true"
""".replace("\\\\n", "\\n")


def test_local_rules_temporary_files_scripts_and_shadows(folder: Path) -> None:
    (folder / "Snakefile").write_text(MIXED)
    (folder / "do.py").write_text("open(snakemake.output[0], 'w').write('by a script')\n")
    done = snakemake(folder, "--rerun-triggers", "mtime")
    assert done.returncode == 0, done.stderr
    assert executed(folder) == {"late": 1, "middle": 1, "prepare": 4, "square": 4, "total": 1}
    assert (folder / "late.txt").read_text() == "14"
    assert (folder / "script.txt").read_text() == "by a script"
    assert (folder / "script.bench").read_text().startswith("s\t")
    assert (folder / "touched").exists()
    assert not (folder / "junk.tmp").exists()
    assert not list((folder / "prep").glob("*"))
    (run,) = api.runs(folder / ".windrow" / "runs")
    assert run.wait(60) == "complete"
    assert len(run.tasks) == 13
    assert not submitted_late(run), "what came later ran on the nodes that were there"
    again = snakemake(folder)
    assert again.returncode == 0
    assert len(api.runs(folder / ".windrow" / "runs")) == 1


CHECKPOINT = """
rule all:
    input: "after.txt"
checkpoint parts:
    output: directory("parts")
    shell: "echo parts >> ran; mkdir parts; for i in 1 2 3; do echo $i > parts/$i.txt; done"
rule double:
    input: "parts/{i}.txt"
    output: "double/{i}.txt"
    shell: "echo double >> ran; cat {input} {input} > {output}"
def found(wildcards):
    folder = checkpoints.parts.get().output[0]
    return expand("double/{i}.txt", i=glob_wildcards(folder + "/{i}.txt").i)
rule aggregate:
    input: found
    output: "all.txt"
    shell: "echo aggregate >> ran; cat {input} | sort > {output}"
rule after:
    input: "all.txt"
    output: "after.txt"
    shell: "echo after >> ran; wc -l < {input} > {output}"
"""


def test_what_comes_after_a_checkpoint_joins_the_run(folder: Path) -> None:
    (folder / "Snakefile").write_text(CHECKPOINT)
    done = snakemake(folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "after.txt").read_text().strip() == "6"
    assert executed(folder) == {"after": 1, "aggregate": 1, "double": 3, "parts": 1}
    (run,) = api.runs(folder / ".windrow" / "runs")
    assert ON != "local" or not submitted_late(run)  # a Slurm may have more cores to give


TOGETHER = """
rule all:
    input: "b/1", "b/2", "counted"
rule first:
    output: temp("a/{i}")
    group: "both"
    shell: "echo first >> ran; echo {wildcards.i} > {output}"
rule second:
    input: "a/{i}"
    output: "b/{i}"
    group: "both"
    shell: "echo second >> ran; cp {input} {output}"
rule stream:
    output: pipe("numbers")
    shell: "echo stream >> ran; seq 5 > {output}"
rule count:
    input: "numbers"
    output: "counted"
    shell: "echo count >> ran; wc -l < {input} > {output}"
"""


def test_groups_and_pipes_are_tasks(folder: Path) -> None:
    (folder / "Snakefile").write_text(TOGETHER)
    done = snakemake(folder)
    assert done.returncode == 0, done.stderr
    assert (folder / "counted").read_text().strip() == "5"
    assert executed(folder) == {"count": 1, "first": 2, "second": 2, "stream": 1}
    (run,) = api.runs(folder / ".windrow" / "runs")
    assert len(run.tasks) == 3


RETRIES = """
rule all:
    input: "late", "independent"
rule flaky:
    output: "flaky"
    retries: 2
    resources: mem_mb=lambda wildcards, attempt: 10 * attempt
    log: "flaky.log"
    shell: "echo flaky >> ran; echo {resources.mem_mb} > {output}; test $(grep -c flaky ran) = 3"
rule late:
    input: "flaky"
    output: "late"
    shell: "echo late >> ran; cp {input} {output}"
rule independent:
    output: "independent"
    shell: "echo independent >> ran; touch {output}"
rule bad:
    output: "bad"
    log: "bad.log"
    shell: "echo bad >> ran; echo of the rule > {log}; exit 7"
rule below:
    input: "bad"
    output: "below"
    shell: "echo below >> ran; touch {output}"
"""


def test_what_fails_is_tried_again_as_often_as_it_may(folder: Path) -> None:
    (folder / "Snakefile").write_text(RETRIES)
    done = snakemake(folder)
    assert done.returncode == 0, done.stderr
    assert executed(folder) == {"flaky": 3, "independent": 1, "late": 1}
    assert (folder / "late").read_text() == "30\n"
    given = ("-k", "--rerun-triggers", "mtime", "--forcerun", "independent")
    bad = snakemake(folder, *given, "--", "below", "independent")
    assert bad.returncode == 1
    assert executed(folder) == {"bad": 1, "flaky": 3, "independent": 2, "late": 1}
    assert "of the rule" in bad.stdout + bad.stderr
    assert "windrow logs bad" in bad.stdout + bad.stderr


LIMITED = """
rule all:
    input: expand("got/{i}", i=range(4))
rule download:
    output: "got/{i}"
    resources: downloads=1
    shell: "date +%s%N >> begun; mkdir one; sleep 0.3; rmdir one; date +%s%N > {output}"
"""


def test_a_limit_of_the_whole_workflow_holds_for_what_is_handed_over(folder: Path) -> None:
    (folder / "Snakefile").write_text(LIMITED)
    done = snakemake(folder, "--resources", "downloads=1")
    assert done.returncode == 0, done.stderr
    assert len((folder / "begun").read_text().split()) == 4


DIES = """
rule all:
    input: "total"
checkpoint parts:
    output: directory("parts")
    shell: "echo parts >> ran; mkdir parts; touch parts/{{1,2,3,4}}.txt"
rule begin:
    input: "parts/{i}.txt"
    output: "begin/{i}"
    shell: "echo begin-{wildcards.i} >> ran; sleep 0.2; echo {wildcards.i} > {output}"
def begun(wildcards):
    return expand("begin/{i}", i=glob_wildcards(checkpoints.parts.get().output[0] + "/{i}.txt").i)
checkpoint more:
    input: begun
    output: directory("more")
    shell: "echo more >> ran; mkdir more; touch more/{{5,6,7,8}}.txt"
rule end:
    input: "more/{i}.txt"
    output: "end/{i}"
    shell: "echo end-{wildcards.i} >> ran; sleep 0.2; echo {wildcards.i} > {output}"
def ended(wildcards):
    return expand("end/{i}", i=glob_wildcards(checkpoints.more.get().output[0] + "/{i}.txt").i)
rule total:
    input: begun, ended
    output: "total"
    shell: "echo total >> ran; cat {input} | sort > {output}"
"""
TASKS = 11
SEEDS = range(7 if IS_FULL else 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_drivers_may_be_killed_and_new_ones_go_on(folder: Path, seed: int) -> None:
    """Three are, at moments drawn from the seed. No task runs twice, whether it had finished or
    not, and the files are the same."""
    (folder / "Snakefile").write_text(DIES)
    chance = random.Random(seed)
    more: tuple[str, ...] = ()
    for seen in sorted(chance.sample(range(TASKS), 3)):
        with subprocess.Popen(
            command(*more), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as driver:
            wait_until(lambda seen=seen: _begun(folder) >= seen or driver.poll() is not None)
            assert driver.poll() is None, "it ended early"
            time.sleep(chance.uniform(0, 4) if seen == 0 else chance.uniform(0, 0.5))
            driver.kill()
        shutil.rmtree(folder / ".snakemake" / "locks", ignore_errors=True)  # as --unlock does
        more = ("--rerun-incomplete",)
    done = snakemake(folder, *more)
    assert done.returncode == 0, done.stderr
    assert (folder / "total").read_text().split() == [str(i) for i in range(1, 9)]
    assert set(executed(folder).values()) == {1}, done.stderr
    assert len(executed(folder)) == TASKS


def _begun(folder: Path) -> int:
    """How many tasks have begun."""
    try:
        return len((folder / "ran").read_text().split())
    except FileNotFoundError:
        return 0


def test_five_hundred_jobs_are_one_run(folder: Path) -> None:
    if not IS_FULL:
        pytest.skip("takes minutes: WINDROW_FULL=1, or make prove")
    (folder / "Snakefile").write_text(
        "rule all:\n    input: expand('o/{i}', i=range(500))\n"
        "rule one:\n    output: 'o/{i}'\n    shell: 'echo one >> ran; touch {output}'\n"
    )
    done = snakemake(folder)
    assert done.returncode == 0, done.stderr
    assert executed(folder) == {"one": 500}
