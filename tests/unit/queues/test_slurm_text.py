"""Reading what Slurm prints: lines as they were seen on Slurm 22.05, and rules that hold for all of
them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.queues.pbs_recorded.run import RecordedRun

from windrow.errors import UserError
from windrow.model.nodes import Need
from windrow.model.resources import Counts, NodeShape
from windrow.queues.command import Answer
from windrow.queues.port import JobSpec, JobState, OutcomeUnknown, QueueError, SpecError
from windrow.queues.slurm.profile import SlurmProfile
from windrow.queues.slurm.queue import SlurmQueue
from windrow.queues.slurm.text import (
    format_duration,
    gres_option,
    parse_closures,
    parse_count,
    parse_duration,
    parse_gres,
    parse_hosts,
    parse_nodes,
    parse_probe,
    parse_sacct,
    parse_snapshot,
    parse_status,
)

CONFIG = """\
Configuration data as of 2026-11-15T12:52:42
AccountingStorageType   = accounting_storage/slurmdbd
ClusterName             = windrow
MaxArraySize            = 1001
MaxJobCount             = 10000
SchedulerParameters     = bf_interval=1,max_array_tasks=200
"""
PARTITIONS = """\
PartitionName=main Default=YES QoS=N/A MaxNodes=UNLIMITED MaxTime=10:00:00 Nodes=n[1-3] State=UP TotalNodes=3
PartitionName=small Default=NO QoS=few MaxNodes=1 MaxTime=00:10:00 Nodes=n[1-2] State=UP TotalNodes=2
"""  # noqa: E501
NODES = (
    "n1|idle|up|2|1000|0|(null)|(null)\nn2|mixed|up|4|2000|0|(null)|fat,new\n"
    "n3|down*|up|4|3000|0|(null)|fat\n"
)
ASSOCIATIONS = """\
||||normal|100||||cpu=64|
ada||||normal|20||1-00:00:00|node=2||
bob||||normal|1||00:01:00|||
"""


def site(**answers: Answer | str) -> RecordedRun:
    fixed: dict[str, Answer | str] = {
        "scontrol show config": CONFIG,
        "scontrol -o show partition": PARTITIONS,
        "scontrol -o show reservation": "No reservations in the system\n",
        "sinfo": NODES,
        "sacctmgr --noheader --parsable2 show user": "science\n",
        "sacctmgr --noheader --parsable2 show assoc": ASSOCIATIONS,
        "sacctmgr --noheader --parsable2 show qos": "normal|||||7-00:00:00|||||\nfew||5||||||||\n",
        "sbatch": "17;windrow\n",
        "squeue": "",
        "sacct ": "",
    }
    return RecordedRun(fixed | answers)


def a_spec(**changes: object) -> JobSpec:
    fields: dict[str, object] = {
        "tag": "run-1",
        "nodes": 1,
        "walltime_s": 60,
        "command": ("true",),
        "workdir": "/",
    }
    return JobSpec(**({"output": "/out %j"} | fields | changes))  # type: ignore[arg-type]


def test_rows_of_squeue() -> None:
    # Submitted, started (or expected), ended (or expected), and a status as of wait(2).
    out = """\
3 |PENDING |1794747120 |1794747480 |1794747780 |0 |Priority | |wrap
1_0 |FAILED |1794747120 |1794747121 |1794747123 |768 |NonZeroExitCode |n[5-6] |run-7..9
4 |PENDING |1794747120 |N/A |N/A |0 |(null) | |a|b
5 |CANCELLED |1794747120 |1794747125 |1794747125 |0 |JobHeldAdmin | |x
6 |FAILED |1794747120 |1794747121 |1794747123 |9 |RaisedSignal:9(Killed) |n1 |x
7 |NOVEL_STATE |1794747120 |1794747121 |1794747123 |0 |None |n1 |x
"""
    rows = {row.status.id: row for row in parse_status(out)}
    waiting, failed = rows["3"].status, rows["1_0"].status
    assert (waiting.state, waiting.started_s, waiting.expected_start_s) == (
        JobState.WAITING,
        None,
        1794747480.0,
    )
    assert waiting.reason == "Priority"
    assert (failed.state, failed.exit_code, failed.ended_s) == (JobState.ENDED, 3, 1794747123.0)
    assert (rows["1_0"].name, rows["4"].name) == ("run-7..9", "a|b")
    assert rows["4"].status.expected_start_s is None
    assert (rows["5"].status.state, rows["5"].status.started_s) == (JobState.CANCELLED, None)
    assert rows["6"].status.exit_code == 137
    assert not rows["7"].status.state.is_over  # what is not understood is not called over


@pytest.mark.parametrize(
    ("old", "new", "code"), [("0", "0:0", 0), ("768", "3:0", 3), ("9", "0:9", 137)]
)
def test_exit_codes_of_two_releases(old: str, new: str, code: int) -> None:
    """22.05 tells a status as of wait(2), 24.11 the code and the signal."""
    for text in (old, new):
        out = f"1 |FAILED |1794747120 |1794747121 |1794747123 |{text} |None |n1 |x\n"
        (row,) = parse_status(out)
        assert row.status.exit_code == code


@pytest.mark.parametrize(
    ("words", "state"),
    [
        ("COMPLETED", JobState.ENDED),
        ("FAILED", JobState.ENDED),
        ("TIMEOUT", JobState.TIMED_OUT),
        ("CANCELLED by 1000", JobState.CANCELLED),
        ("CANCELLED+", JobState.CANCELLED),
        ("NODE_FAIL", JobState.NODE_FAILED),
        ("BOOT_FAIL", JobState.NODE_FAILED),
        ("OUT_OF_MEMORY", JobState.OUT_OF_MEMORY),
        ("PREEMPTED", JobState.PREEMPTED),
        ("DEADLINE", JobState.KILLED),
    ],
)
def test_states_in_accounts(words: str, state: JobState) -> None:
    (row,) = parse_sacct(f"2_1|{words}|1794747349|1794747351|1794747379|0:0|None|n1|run-7..8\n")
    assert (row.status.state, row.status.id, row.status.reason) == (state, "2_1", words)


@pytest.mark.parametrize("words", ["RUNNING", "PENDING", "REQUEUED", "COMPLETING", "SUSPENDED"])
def test_accounts_are_believed_only_of_jobs_that_are_over(words: str) -> None:
    assert parse_sacct(f"2|{words}|1794747349|1794747351|Unknown|0:0|None|n1|wrap\n") == []


def test_snapshot_order_and_limits() -> None:
    out = """\
9|PENDING|N/A|UNLIMITED|2K|7|Priority|bob
8_1|PENDING|N/A|1-00:00:00|2-4|9|Resources|ada
8_0|PENDING|N/A|1-00:00:00|2|9|Resources|ada
7|RUNNING|1794747120|5:00|8|1|None|bob
6|PENDING|N/A|5:00|8|0|JobHeldUser|bob
5|PENDING|N/A|5:00|8|4|Dependency|bob
4|PENDING|N/A|Partition_Limit|1|4|Priority|bob
"""
    jobs = parse_snapshot(out, default_s=600)
    assert [job.id for job in jobs] == ["7", "8_0", "8_1", "9", "4"]
    assert [job.nodes for job in jobs] == [8, 2, 2, 2048, 1]
    assert [job.requested_s for job in jobs] == [300, 86400, 86400, 365 * 86400, 600]
    assert [job.started_s for job in jobs] == [1794747120.0, None, None, None, None]


@given(st.integers(0, 40 * 86400))
def test_durations_survive_a_round_trip(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5:00", 300),
        ("1:00:00", 3600),
        ("2-03", 183600),
        ("90", 5400),
        ("1-00:00:01", 86401),
        ("UNLIMITED", None),
        ("", None),
    ],
)
def test_durations_as_slurm_writes_them(text: str, seconds: int | None) -> None:
    assert parse_duration(text) == seconds


def test_counts_nodes_and_probes() -> None:
    assert [parse_count(text) for text in ("8", "2K", "1.5K", "2-4")] == [8, 2048, 1536, 2]
    states = {
        "idle": True,
        "allocated": True,
        "mixed-": True,
        "idle~": True,
        "draining": True,
        "drained": False,
    }
    states |= {
        "down": False,
        "down*": False,
        "idle*": False,
        "unknown": False,
        "planned": True,
        "reserved": False,
    }
    nodes = parse_nodes(
        "".join(f"n{i}|{state}|up|2|1000|0|(null)|(null)\n" for i, state in enumerate(states))
    )
    assert [node.is_usable for node in nodes] == list(states.values())
    seen = (
        "sbatch: Job 6 to start at 1794747722 using 4 processors on nodes n[7-8] in partition "
        "main\n"
    )
    assert parse_probe(seen) == 1794747722.0
    assert (
        parse_probe("allocation failure: Requested node configuration is not available\n") is None
    )


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (
            Answer(
                1, "", "sbatch: error: Batch job submission failed: Invalid qos specification\n"
            ),
            SpecError,
        ),
        (Answer(255, "", "sbatch: unrecognized option '--badopt'\n"), SpecError),
        (
            Answer(1, "", "sbatch: error: Unable to contact slurm controller (connect failure)\n"),
            QueueError,
        ),
        (
            Answer(
                1, "", "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Job violates policy\n"
            ),
            QueueError,
        ),
        (Answer(1, "", "sbatch: error: QOSMaxSubmitJobPerUserLimit\n"), QueueError),
        (Answer(1, "", "sbatch: error: Socket timed out on send/recv operation\n"), OutcomeUnknown),
        (Answer(1, "", "sbatch: error: Zero Bytes were transmitted or received\n"), OutcomeUnknown),
        (Answer(None, "", ""), OutcomeUnknown),
        (Answer(-9, "", ""), OutcomeUnknown),
        (Answer(0, "what?\n", ""), OutcomeUnknown),
    ],
)
def test_what_sbatch_says(answer: Answer, error: type[Exception]) -> None:
    with pytest.raises(error):
        SlurmQueue(run=site(sbatch=answer), env={}).submit(a_spec())


def test_the_cluster_after_an_id_and_patterns_in_the_output_mean_nothing() -> None:
    run = site()
    assert (
        SlurmQueue(
            SlurmProfile(account="hydro", extra=("--mail-type=END",)), run=run, env={}
        ).submit(a_spec())
        == "17"
    )
    assert {"--output=/out %%j", "--account=hydro", "--mail-type=END", "--exclusive"} <= set(
        run.asked[-1]
    )


def test_limits_are_the_tightest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windrow.queues.batch.user_name", lambda: "ada")
    main = SlurmQueue(run=site(), env={}).limits()
    assert (main.nodes, main.max_nodes, main.max_walltime_s) == (3, 2, 36000)
    assert (main.max_jobs, main.max_array) == (20, 20)
    assert (main.shape.cores, main.shape.memory_bytes) == (2, 1000 * 1024**2)
    small = SlurmQueue(
        SlurmProfile(partition="small", constraint="fat"), run=site(), env={}
    ).limits()
    assert (small.max_jobs, small.max_walltime_s, small.shape.cores) == (
        5,
        600,
        4,
    )  # the partition's own QOS


@pytest.mark.parametrize(
    ("gres", "counts"),
    [
        ("(null)", ()),
        ("gpu:2", (("gpus", 2),)),
        (
            "gpu:a100:2(S:0-1),gpu:v100:1(S:2,3)",
            (("gpus", 3), ("gpus:a100", 2), ("gpus:v100", 1)),
        ),
        (
            "shard:8,mps:100,lic:matlab:3,scratch:no_consume:1T,bandwidth:2K",
            (("bandwidth", 2048), ("lic", 3)),
        ),
        ("craynetwork:0", ()),
    ],
)
def test_what_gres_counts(gres: str, counts: Counts) -> None:
    assert parse_gres(gres) == counts


@pytest.mark.parametrize(
    ("counts", "option"),
    [
        ((("gpus", 2),), ["--gres=lic:1,gpu:2"]),
        ((("gpus", 2), ("gpus:a100", 2)), ["--gres=lic:1,gpu:a100:2"]),
        ((("gpus", 2), ("gpus:a100", 1), ("gpus:v100", 1)), ["--gres=lic:1,gpu:a100:1,gpu:v100:1"]),
        ((), []),
    ],
)
def test_gpus_are_requested_by_type_if_they_have_one(counts: Counts, option: list[str]) -> None:
    assert gres_option(counts, ["--gres=gpu:1,lic:1"]) == option


def test_kinds_of_nodes_and_what_a_job_requests_of_them() -> None:
    rows = (
        "n1|idle|up|2|1000|0|(null)|x\nn2|idle|up|4|2000|500|gpu:2|x\n"
        "n3|idle|up|4|2000|500|gpu:2|x\n"
    )
    queue = SlurmQueue(SlurmProfile(extra=("--gres=gpu:1,lic:1",)), run=site(sinfo=rows), env={})
    mib = 1024**2
    kinds = (
        (NodeShape(2, 1000 * mib, 0), 1),
        (NodeShape(4, 2000 * mib, 500 * mib, (("gpus", 2),)), 2),
    )
    assert tuple((kind.shape, kind.count) for kind in queue.limits().kinds) == kinds
    plain, special = (
        queue.commands([a_spec(**more)])[0]
        for more in ({}, {"per_node": Need(4, mib, 0, 1, (("gpus", 2),))})
    )
    assert "--mem=0" in plain
    assert plain.count("--gres") == 1
    assert "--mem=1M" in special
    assert "--mincpus=4 --tmp=1M" in special
    assert special.index("--gres=gpu:1,lic:1") < special.index(
        "--gres=lic:1,gpu:2"
    )  # the last one counts


def test_accounts_that_cannot_be_read_set_no_limit() -> None:
    down = Answer(1, "", "sacctmgr: error: slurm_persist_conn_open_without_init: failed\n")
    limits = SlurmQueue(
        run=site(**{"sacctmgr --noheader --parsable2 show assoc": down}), env={}
    ).limits()
    assert (limits.max_jobs, limits.max_array) == (10000, 200)


def test_status_asks_once_and_accounts_only_for_the_forgotten() -> None:
    known = "3|RUNNING|1794747120|1794747121|1794747780|0|None|n1|wrap\n"
    old = "2|COMPLETED|1794747000|1794747001|1794747002|0:0|None|n1|wrap\n"
    run = site(squeue=known, **{"sacct ": old})
    queue = SlurmQueue(run=run, env={})
    assert set(queue.status(["3"])) == {"3"}
    assert [argv[:2] for argv in run.asked if argv[0] != "scontrol"][-1] == ["squeue", "--local"]
    assert sum(argv[0] == "squeue" for argv in run.asked) == 1
    assert set(queue.status(["3", "2", "1"])) == {"3", "2"}
    assert run.asked[-1][-2:] == ["--jobs", "2,1"]
    run.answers["sacct "] = Answer(1, "", "sacct: error: slurmdbd is down")
    with pytest.raises(QueueError):  # not the same as absent
        queue.status(["2"])


def test_where_clusters_are_shown_together_squeue_tells_of_all() -> None:
    config = f"{CONFIG}FederationParameters    = fed_display\n"
    run = site(**{"scontrol show config": config})
    SlurmQueue(run=run, env={}).status(["3"])
    assert "--local" not in next(argv for argv in run.asked if argv[0] == "squeue")


def test_profiles_are_checked() -> None:
    profile = SlurmProfile(
        partition="main", constraint="a&b", extra=("--mail-type=END", "--comment=x y")
    )
    assert profile.options == [
        "--partition=main",
        "--constraint=a&b",
        "--mail-type=END",
        "--comment=x y",
    ]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"partition": "a,b"}, "one name"),
        ({"account": "--wrap=x"}, "one name"),
        ({"extra": ("-N 3",)}, "must look like"),
        ({"extra": ("--job-name=x",)}, "sets it itself"),
        ({"extra": ("--part=x",)}, "set partition in the profile"),
        ({"extra": ("--no-req",)}, "sets it itself"),
    ],
)
def test_bad_profiles_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        SlurmProfile(**wrong)


def test_an_outer_job_does_not_leak_into_what_it_submits() -> None:
    env = {
        "SLURM_JOB_ID": "1",
        "SLURM_CPUS_PER_TASK": "4",
        "SLURM_CONF": "/c",
        "SQUEUE_FORMAT": "%i",
        "HOME": "/h",
    }
    assert SlurmQueue(run=site(), env=env)._env == {"SLURM_CONF": "/c", "HOME": "/h"}


def test_drained_and_reserved_nodes_are_not_offered() -> None:
    states = {
        "idle": True,
        "allocated": True,
        "mixed": True,
        "idle~": True,
        "planned": True,
        "draining": False,
    }
    states |= {
        "drained": False,
        "down*": False,
        "maint": False,
        "reserved": False,
        "allocated$": False,
    }
    rows = "".join(f"n{i}|{state}|up|2|1000|0|(null)|(null)\n" for i, state in enumerate(states))
    assert [node.is_open for node in parse_nodes(rows)] == list(states.values())
    ours = parse_nodes(rows, has_reservation=True)
    assert [node.is_open for node in ours] == [value or "n" + str(i) in ("n8", "n9", "n10") for i, value in  # noqa: E501
                                               enumerate(states.values())]  # fmt: skip
    assert not any(node.is_open for node in parse_nodes(rows.replace("|up|", "|down|")))


def test_limits_tell_what_can_be_had_now() -> None:
    limits = SlurmQueue(run=site(), env={}).limits()
    assert (limits.nodes, limits.usable_nodes, limits.closed) == (3, 2, "")
    drained = "n1|drained|up|2|1000|0|(null)|(null)\nn2|draining|up|4|2000|0|(null)|fat\n"
    limits = SlurmQueue(run=site(sinfo=drained), env={}).limits()
    assert (limits.nodes, limits.usable_nodes) == (2, 0)
    assert (
        limits.closed
        == "all 2 nodes of partition main are down, drained or reserved (see sinfo -R)"
    )
    down = PARTITIONS.replace("State=UP TotalNodes=3", "State=DOWN TotalNodes=3")
    limits = SlurmQueue(run=site(**{"scontrol -o show partition": down}), env={}).limits()
    assert limits.closed == "partition main is down (State=DOWN)"


def test_a_snapshot_offers_only_nodes_that_our_jobs_may_use() -> None:
    nodes = (
        "n1|idle|up|2|1000|0|(null)|(null)\nn2|draining|up|4|2000|0|(null)|fat\n"
        "n3|idle|up|4|2000|0|(null)|fat\n"
    )
    seen = SlurmQueue(SlurmProfile(constraint="fat"), run=site(sinfo=nodes), env={}).snapshot()
    assert (seen.nodes, seen.open_nodes) == (3, 1)


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n3", ("n3",)),
        ("n[1-3]", ("n1", "n2", "n3")),
        ("n[08-10,12],gpu1", ("n08", "n09", "n10", "n12", "gpu1")),
        ("a1,b[2-3]", ("a1", "b2", "b3")),
        ("n[1-3,", ()),
        ("r[1-2]n[3-4]", ()),
    ],
)
def test_lists_of_nodes(text: str, hosts: tuple[str, ...]) -> None:
    assert parse_hosts(text) == hosts


def test_nodes_to_avoid_are_excluded_beside_those_of_the_profile() -> None:
    job = JobSpec("run-0", 1, 60, ("true",), "/", "/dev/null", avoid=("n1", "n3"))
    (plain,) = SlurmQueue(run=site(), env={}).commands([job])
    assert " --exclude=n1,n3 " in plain
    own = SlurmProfile(extra=("--exclude=n2",))
    (both,) = SlurmQueue(own, run=site(), env={}).commands([job])
    assert both.rindex("--exclude=n2,n1,n3") > both.index("--exclude=n2 ")
    (none,) = SlurmQueue(run=site(), env={}).commands([replace(job, avoid=())])
    assert "--exclude" not in none


def test_every_command_is_told_the_cluster() -> None:
    recorded, seen = (
        site(squeue="CLUSTER: dusk\n", scancel="", **{"scontrol hold": ""}),
        list[Sequence[str]](),
    )

    def run(argv: Sequence[str], **more: Any) -> Answer:
        seen.append(argv)
        return recorded(
            [argv[0], *(word for word in argv[1:] if word != "--clusters=dusk")], **more
        )

    queue = SlurmQueue(SlurmProfile(cluster="dusk"), env={}, run=run)
    assert queue.submit(a_spec()) == "17"
    assert queue.status(["17", "18_1"]) == {}
    assert queue.find(["x"]) == {}
    assert queue.snapshot().jobs == ()
    queue.past_jobs(0.0)
    queue.probe(1, 60)
    queue.cancel(["17", "18_1"])
    assert {argv[0] for argv in seen} >= {
        "sbatch",
        "squeue",
        "scontrol",
        "sinfo",
        "sacct",
        "sacctmgr",
    }
    assert all(argv[1] == "--clusters=dusk" for argv in seen if argv[0] != "sacctmgr")
    assert "--clusters=dusk" in queue.commands([a_spec()])[0]
    with pytest.raises(UserError, match="set cluster in the profile"):
        SlurmProfile(extra=("--clusters=dusk",))


RESERVATIONS = """\
ReservationName=service StartTime=2000 EndTime=5600 Duration=01:00:00 Nodes=n[1-3],m1 NodeCnt=4 Flags=MAINT,IGNORE_JOBS
ReservationName=course StartTime=2000 EndTime=5600 Duration=01:00:00 Nodes=n[1-3] NodeCnt=3 Flags=SPEC_NODES
ReservationName=begun StartTime=900 EndTime=5600 Duration=01:00:00 Nodes=n[1-3] NodeCnt=3 Flags=MAINT
ReservationName=others StartTime=2000 EndTime=5600 Duration=01:00:00 Nodes=x[1-3] NodeCnt=3 Flags=MAINT
"""  # noqa: E501


def test_only_maintenance_to_come_closes_nodes() -> None:
    assert parse_closures(RESERVATIONS, {"n1", "n2", "n9"}, 1000.0) == ((2000.0, 5600.0, 2),)
    assert parse_closures("No reservations in the system\n", {"n1"}, 1000.0) == ()
