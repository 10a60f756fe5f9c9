"""What of the environment reaches Slurm's commands, and through sbatch the jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.unit.queues.test_slurm_text import site

from windrow.app.queues import open_queue
from windrow.errors import UserError
from windrow.queues.command import Answer
from windrow.queues.port import JobSpec, QueueError
from windrow.queues.slurm.profile import SlurmProfile
from windrow.queues.slurm.queue import SlurmQueue


def test_the_variables_of_an_outer_job_do_not_reach_the_jobs_that_it_submits() -> None:
    seen: list[Mapping[str, str]] = []

    def run(argv: Sequence[str], *, stdin: str, env: Mapping[str, str], timeout_s: float) -> Answer:
        del argv, stdin, timeout_s
        seen.append(env)
        return Answer(1, "", "nobody answers here")

    outer = {
        "WINDROW_QUEUE": "local",
        "WINDROW_JOB_ID": "7",
        "WINDROW_JOB_NODES": "a b",
        "PATH": "/bin",
    }
    with pytest.raises(QueueError):
        SlurmQueue(env=outer, run=run).snapshot()
    assert seen
    assert all("PATH" in env and not any(key.startswith("WINDROW_") for key in env) for env in seen)


def test_variables_of_sbatch_that_are_settings_count_where_the_file_says_nothing() -> None:
    env = {
        "SBATCH_PARTITION": "long",
        "SBATCH_QOS": "express",
        "SBATCH_TIMELIMIT": "5",
        "PATH": "/bin",
    }
    queue = SlurmQueue(SlurmProfile(qos="normal"), env=env)
    assert (queue.profile.partition, queue.profile.qos) == ("long", "normal")
    assert queue.notes == ("partition long (from SBATCH_PARTITION)",)
    # a run is resumed from anywhere with these
    assert queue.shell == {"SBATCH_PARTITION": "long", "PATH": "/bin"}
    assert queue._env == {"PATH": "/bin"}  # sbatch itself sees none of them


def test_variables_of_sbatch_that_would_change_jobs_are_dropped_and_told() -> None:
    env = {
        "SBATCH_GRES": "gpu:1",
        "SBATCH_CLUSTERS": "other",
        "SBATCH_WCKEY": "x",
        "SBATCH_EXCLUSIVE": "user",
    }
    queue = SlurmQueue(SlurmProfile(extra=("--wckey=y",)), env=env)
    assert queue._env == {}
    assert queue.profile == SlurmProfile(extra=("--wckey=y",))
    (note,) = queue.notes
    assert note.startswith("SBATCH_CLUSTERS, SBATCH_GRES are ignored; ")


def test_a_run_keeps_the_settings_of_the_shell_in_which_it_began(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SBATCH_PARTITION", "elsewhere")
    monkeypatch.setenv("SBATCH_QOS", "other")
    queue = open_queue("slurm", shell={"SBATCH_PARTITION": "long"})
    assert isinstance(queue, SlurmQueue)
    assert (queue.profile.partition, queue.profile.qos) == ("long", "")
    assert queue.notes == ("partition long (from SBATCH_PARTITION)",)


def test_a_variable_of_sbatch_that_cannot_be_used_is_named() -> None:
    with pytest.raises(
        UserError, match=r"^SBATCH_PARTITION: partition = 'a,b' .* set partition in windrow.toml$"
    ):
        SlurmQueue(env={"SBATCH_PARTITION": "a,b"})


@pytest.mark.parametrize(
    "words",
    [
        "allocation failure: Invalid account or account/partition combination specified",
        "allocation failure: Invalid qos specification",
        "sbatch: unrecognized option '--badopt'",
        "allocation failure: Requested reservation is invalid",
    ],
)
def test_settings_that_slurm_would_never_take_are_refused_before_a_run(words: str) -> None:
    run = site(**{"sbatch --test-only": Answer(1, "", f"{words}\n")})
    run.answers["sacctmgr --noheader --parsable2 show assoc where user="] = (
        "phys|normal,express\nchem|normal\n"
    )
    queue = SlurmQueue(env={"SBATCH_ACCOUNT": "nosuch"}, run=run)
    with pytest.raises(UserError) as caught:
        queue.check()
    allowed = "you may use the accounts phys (QOS normal, express), chem (QOS normal)"
    expected = f"Slurm accepts no job with account=nosuch (from SBATCH_ACCOUNT): {words}; {allowed}"
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "answer",
    [
        Answer(
            0,
            "",
            "sbatch: Job 6 to start at 1794747722 using 4 processors on nodes n[7-8] in "
            "partition main\n",
        ),
        Answer(1, "", "allocation failure: Requested node configuration is not available\n"),
        Answer(1, "", "allocation failure: Unable to contact slurm controller (connect failure)\n"),
        Answer(
            1,
            "",
            "sbatch: error: AssocMaxSubmitJobLimit\nallocation failure: Job violates "
            "accounting/QOS policy\n",
        ),
        Answer(None, "", ""),
    ],
)
def test_what_may_change_is_no_wrong_setting(answer: Answer) -> None:
    SlurmQueue(env={}, run=site(**{"sbatch --test-only": answer})).check()


def test_who_names_two_partitions_is_told_how_to_use_both() -> None:
    with pytest.raises(UserError, match=r"leave it out and use --on short,long$"):
        SlurmProfile(partition="short,long")


@pytest.mark.parametrize(
    ("option", "key"), [("--exclusive", 'share = "cores"'), ("--mem", 'memory = "default"')]
)
def test_options_that_a_site_does_not_want_are_named_with_the_setting(
    option: str, key: str
) -> None:
    usual = site()

    def run(argv: Sequence[str], **how: Any) -> Answer:
        if argv[0] == "sbatch" and any(one.startswith(option) for one in argv):
            return Answer(1, "", "sbatch: error: not on this machine\n")
        if argv[0] == "sbatch":
            return Answer(0, "7\n", "sbatch: Job 7 to start at 1794747722 using 1 processors\n")
        return usual(argv, **how)

    with pytest.raises(UserError) as caught:
        SlurmQueue(env={}, run=run).check()
    assert f"this site accepts no job with {option}: sbatch: error: not on this machine" in str(
        caught.value
    )
    assert key in str(caught.value)


def test_nothing_is_said_of_memory_where_a_site_does_not_want_it() -> None:
    queue = SlurmQueue(SlurmProfile(memory="default"), env={}, run=site())
    (command,) = queue.commands([JobSpec("a", 1, 60, ("true",), "/", "/out")])
    assert "--mem" not in command
    (command,) = SlurmQueue(env={}, run=site()).commands(
        [JobSpec("a", 1, 60, ("true",), "/", "/out")]
    )
    assert "--mem=0" in command
