"""Limits in cores, memory and GPUs, and pools that the profile narrows, as a Slurm 22.05 of eight
nodes showed them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import pytest
from tests.unit.queues.test_slurm_text import CONFIG, a_spec, site

from windrow.app.queues import no_answer
from windrow.errors import UserError
from windrow.model.resources import NodeShape
from windrow.queues.command import Answer
from windrow.queues.port import QueueError, SpecError
from windrow.queues.slurm.pool import with_features
from windrow.queues.slurm.profile import SlurmProfile
from windrow.queues.slurm.queue import SlurmQueue
from windrow.queues.slurm.text import parse_nodes
from windrow.queues.slurm.tres import Bound, Rule, bounds_of, parse_tres, usage_argv, used_of

NODES = """\
n1|idle|up|4|2000|0|(null)|thin
n2|idle|up|4|2000|0|(null)|thin
n3|idle|up|4|2000|0|(null)|thin
n4|idle|up|4|2000|0|(null)|thin
n5|idle|up|8|6000|0|gpu:2|fat,avx
n6|idle|up|8|6000|0|gpu:2|fat,avx
n7|idle|up|8|16000|0|(null)|big,avx
n8|idle|up|8|16000|0|(null)|big,avx
"""
QOS = """\
normal||||||||||
cpujob||||||cpu=8||||
cpuuser|OverPartQOS|||||||cpu=8||
acct|||||||||cpu=8,mem=4G|
grp||||||||||cpu=8,gres/gpu=2
nod|||||||cpu=4|||
gpu||||||||gres/gpu=1||
nodes||||||||node=3||
tiny||||||||cpu=2||
"""
# what it inherits is shown in each row
LAB = "||science||normal||||mem=33G||\nroot||||normal||||mem=33G||\n"
SCIENCE, ROOT = "||root||normal||||mem=33G||cpu=24\n", "||||normal||||||\n"
PARTITION = (
    "PartitionName=main Default=YES QoS=N/A MaxNodes=UNLIMITED MaxTime=10:00:00 "
    "Nodes=n[1-8] State=UP\n"
)
SHOW = "sacctmgr --noheader --parsable2 show"
RESERVATION = (
    "ReservationName=r1 StartTime=1794747202 EndTime=1794750802 Nodes=n[1-2] NodeCnt=2 "
    "Flags=SPEC_NODES\n"
)


def queue_of(
    qos: str = "",
    *,
    extra: Sequence[str] = (),
    constraint: str = "",
    config: str = CONFIG,
    **answers: Answer | str,
) -> SlurmQueue:
    """A queue of that cluster; the user's account is `lab`, below `science`."""
    fixed: dict[str, Answer | str] = {
        "scontrol show config": config,
        "scontrol -o show partition": PARTITION,
        "sinfo": NODES,
        f"{SHOW} user": "lab\n",
        f"{SHOW} assoc where account=lab": LAB,
        f"{SHOW} assoc where account=science user= ": SCIENCE,
        f"{SHOW} assoc where account=root user= ": ROOT,
        f"{SHOW} qos": QOS,
        "scontrol -o show reservation": RESERVATION,
        "scontrol -o show assoc_mgr": Answer(1, "", "slurm_load_assoc_mgr_info: Access denied"),
    }
    run = site(**(fixed | answers))
    run.answers.pop(f"{SHOW} assoc")  # which would answer for all of them
    return SlurmQueue(
        SlurmProfile(qos=qos, constraint=constraint, extra=tuple(extra)), run=run, env={}
    )


@pytest.fixture(autouse=True)
def user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windrow.queues.batch.user_name", lambda: "root")


@pytest.mark.parametrize(
    ("qos", "nodes", "most", "why"),
    [
        ("normal", 8, 2, "MaxTRES mem=33G of user root in account lab"),
        ("cpujob", 8, 1, "MaxTRES cpu=8 of QOS cpujob"),
        ("cpuuser", 8, 1, "MaxTRESPerUser cpu=8 of QOS cpuuser"),
        ("acct", 4, 2, "MaxTRESPerAccount cpu=8 of QOS acct"),  # nodes of 6 GB are too large
        ("grp", 8, 1, "GrpTRES cpu=8 of QOS grp"),
        ("nod", 4, 6, "GrpTRES cpu=24 of account science"),  # nodes of 8 cores are too large
        (
            "gpu",
            6,
            2,
            "MaxTRES mem=33G of user root in account lab",
        ),  # nodes with 2 GPUs are too large
        ("nodes", 8, 2, "MaxTRES mem=33G of user root in account lab"),
    ],
)
def test_a_job_is_no_wider_than_limits_on_resources_allow(
    qos: str, nodes: int, most: int, why: str
) -> None:
    limits = queue_of(qos).limits()
    assert (limits.nodes, limits.max_nodes, limits.closed) == (nodes, most, "")
    noun = "node" if most == 1 else "nodes"
    assert (
        limits.narrow == f"a job has at most {most} {noun} here: {why}, and jobs take whole nodes"
    )
    with pytest.raises(SpecError, match=f"allows 1 to {min(nodes, most)}"):
        queue_of(qos).submit(a_spec(nodes=most + 1))


def test_nodes_that_are_too_large_are_kept_out_of_all_jobs() -> None:
    (line,) = queue_of("gpu", extra=["--exclude=n1"]).commands([a_spec(avoid=("n3",))])
    assert "--exclude=n1,n5,n6,n3 " in line
    assert queue_of("gpu").snapshot().open_nodes == 6
    assert queue_of("gpu").limits().left_out == (
        "MaxTRESPerUser gres/gpu=1 of QOS gpu leaves out 2 nodes of 8 cores, 5.9 GiB of memory and "
        "2 GPUs: jobs take whole nodes"
    )
    assert queue_of("normal").limits().left_out == ""


def test_where_no_node_is_small_enough_nothing_can_start() -> None:
    assert queue_of("tiny").limits().closed == (
        "MaxTRESPerUser cpu=2 of QOS tiny allows less than one whole node, which has 4 cores and "
        "2 GiB of memory, and "
        "jobs take whole nodes (another QOS or account may allow more)"
    )


def test_memory_counts_only_where_slurm_counts_it() -> None:
    linear = f"{CONFIG}SelectTypeParameters    = CR_CORE\n"
    assert queue_of(config=linear).limits().max_nodes == 3  # 24 cores for all of the account


def test_limits_that_are_not_enforced_are_none() -> None:
    lax = f"{CONFIG}AccountingStorageEnforce = associations\n"
    assert queue_of("tiny", config=lax).limits().max_nodes is None


def test_of_two_qos_that_limit_one_thing_that_of_the_partition_counts() -> None:
    """As in Slurm, unless the job's says OverPartQOS; and a QOS counts before associations."""
    both = {"scontrol -o show partition": PARTITION.replace("QoS=N/A", "QoS=tiny")}
    assert queue_of("cpuuser", **both).limits().max_nodes == 1
    assert "QOS tiny" in queue_of("normal", **both).limits().closed
    wide = QOS.replace("grp||||||||||cpu=8,gres/gpu=2", "grp||||||||||cpu=48")
    assert (
        queue_of("grp", **{f"{SHOW} qos": wide}).limits().max_nodes == 2
    )  # and not 24 cores of the account


def test_amounts_of_resources() -> None:
    told = [
        (name, amount)
        for name, amount, _ in parse_tres("cpu=8,mem=1.50T,gres/gpu:a100=2,license/matlab=1,mem=5")
    ]
    gib = 1024**3
    assert told == [
        ("cpu", 8),
        ("mem", 1536 * gib),
        ("gres/gpu:a100", 2),
        ("license/matlab", 1),
        ("mem", 5 * 1024**2),
    ]
    assert Bound("billing", 10, "x").most_nodes(NodeShape(4)) is None


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("", "12345678"), ("fat", "56"), ("fat&avx", "56"), ("fat|big", "5678"), ("thin&avx", ""),
        ("thin|fat&avx", "56"), ("thin&fat|big", "78"), ("(thin&avx)|big", "78"),
        ("(fat|big)&avx", "5678"),
        ("thin|(fat&avx)", "123456"), ("[thin|avx]", "1234"), ("avx&[fat|thin]", "56"),
        ("fat*2&thin*2", "12345678"), ("[fat*2&thin*2]", "12345678"), ("fat&(", "12345678"),
        ("fat,big", "12345678"),
    ],
)  # fmt: skip
def test_expressions_of_features(expression: str, names: str) -> None:
    """Those without counts and brackets: as `sbatch --test-only` decided with one node more and one
    less."""
    found = with_features(parse_nodes(NODES), expression)
    assert "".join(node.name[1:] for node in found) == names


@pytest.mark.parametrize(
    ("extra", "names", "options"),
    [
        (["--exclude=n[1-3],n8"], "4567", ["--exclude=n[1-3],n8"]),
        (["--nodelist=n[7-8],n1"], "178", ["--exclude=n2,n3,n4,n5,n6"]),
        (["--reservation=r1"], "12", ["--reservation=r1"]),
        (["--reservation=r1", "--exclude=n1"], "2", ["--reservation=r1", "--exclude=n1"]),
        (["--nodelist=./file"], "12345678", ["--nodelist=./file"]),
    ],
)
def test_only_nodes_that_jobs_may_have_are_counted(
    extra: list[str], names: str, options: list[str]
) -> None:
    queue = queue_of("cpujob", extra=extra)
    assert queue.limits().nodes == queue.snapshot().open_nodes == len(names)
    assert queue._site.pool == {f"n{name}" for name in names}
    words = shlex.split(queue.commands([a_spec()])[0].splitlines()[0])
    assert [
        word for word in words if word.startswith(("--exclude", "--nodelist", "--reservation"))
    ] == options


def test_a_pool_without_nodes_is_refused_with_what_makes_it_empty() -> None:
    with pytest.raises(
        UserError,
        match=r"main of this Slurm has no nodes with the feature fat, --exclude=n\[5-6\]$",
    ):
        queue_of(constraint="fat", extra=["--exclude=n[5-6]"]).limits()


def test_a_list_of_nodes_that_is_hard_to_read_is_left_to_slurm() -> None:
    hostnames = {"scontrol show hostnames n[1-2]x[3-4]": "n5\nn6\n"}
    assert queue_of(extra=["--exclude=n[1-2]x[3-4]"], **hostnames).limits().nodes == 6


def test_nodes_in_use_that_no_job_explains_are_hidden() -> None:
    busy = (
        NODES.replace("n1|idle", "n1|allocated")
        .replace("n2|idle", "n2|mixed")
        .replace("n3|idle", "n3|draining")
    )
    shown = "7|RUNNING|1794747120|5:00|1|1|None|bob\n"
    assert queue_of(sinfo=busy, squeue=shown).snapshot().hidden_nodes == 2
    assert queue_of(sinfo=busy, squeue=shown.replace("|1|1|", "|3|1|")).snapshot().hidden_nodes == 0
    queue = queue_of(sinfo=busy, squeue=shown)
    asked: list[str] = []
    once = queue._command

    def starting(argv: Sequence[str], stdin: str = "") -> Answer:
        asked.append(argv[0])
        answer = once(argv, stdin)
        return (
            Answer(0, shown.replace("|1|1|", "|3|1|"), "") if asked.count("squeue") > 1 else answer
        )

    queue._command = starting  # type: ignore[method-assign]  # jobs start between one command and the next
    assert queue.snapshot().hidden_nodes == 0
    assert asked.count("squeue") == 2


def test_a_refusal_to_answer_is_told_in_slurms_words() -> None:
    denied = Answer(1, "", "slurm_load_node: Access/permission denied\n")
    with pytest.raises(QueueError) as caught:
        queue_of(sinfo=denied).limits()
    said = str(no_answer("slurm", caught.value))
    assert said.startswith(
        "the queue slurm does not tell you what Windrow needs to know: sinfo failed: "
        "slurm_load_node: "
        "Access/permission denied; "
    )
    assert "does not answer" not in said


IN_USE = """\
Current Association Manager state
Association Records
ClusterName=w Account=physics UserName= Partition= ID=5 GrpTRES=cpu=8(7),mem=N(400) GrpTRESMins=cpu=N(70) MaxTRESPJ=
ClusterName=w Account=physics UserName=sci(65534) Partition= ID=6 GrpTRES=cpu=N(2),mem=N(0) MaxTRESPJ=
QOS Records
QOS=cores(2) GrpTRES=cpu=6(5),mem=N(0) Account Limits= science={MaxTRESPA=cpu=N(1)} User Limits= 1={MaxTRESPU=cpu=4(1)} 65534={MaxJobsPU=N(0) MaxTRESPU=cpu=4(3),mem=3072(1000)}
"""  # noqa: E501


def test_what_running_jobs_use_of_a_limit() -> None:
    rules = (
        Rule("QOS cores", True, {"MaxTRESPerUser": "cpu=4,mem=3G", "MaxTRES": "cpu=4"}),
        Rule("user sci in account physics", False, {"GrpTRES": "cpu=9"}),
        Rule("account physics", False, {"GrpTRES": "cpu=8"}),
        Rule("account root", False, {"GrpTRES": "cpu=80"}),
    )
    assert used_of(IN_USE, bounds_of(rules), "sci") == {
        "MaxTRESPerUser cpu=4 of QOS cores": 3,
        "MaxTRESPerUser mem=3G of QOS cores": 1000 << 20,
        "GrpTRES cpu=9 of user sci in account physics": 2,
        "GrpTRES cpu=8 of account physics": 7,
    }
    assert used_of("slurm: error", bounds_of(rules), "sci") == {}
    assert usage_argv(bounds_of(rules), "sci")[4:] == [
        *("flags=assoc,qos", "users=sci", "accounts=physics,root", "qos=cores")
    ]
    of_qos = (Rule("QOS cores", True, {"GrpTRES": "cpu=6"}), *rules[1:])
    assert used_of(IN_USE, bounds_of(of_qos), "sci") == {"GrpTRES cpu=6 of QOS cores": 5}


OF_QOS = """\
Association Records
ClusterName=w Account=physics UserName=root(0) Partition= ID=6 GrpTRES=cpu=N(2),mem=N(0) MaxTRESPJ=
QOS Records
QOS=cpuuser(2) GrpTRES=cpu=N(5) User Limits= 0={MaxTRESPU=cpu=16(4)}
"""


def test_what_running_jobs_leave_of_a_limit_bounds_jobs_of_whole_nodes() -> None:
    wide = QOS.replace("cpuuser|OverPartQOS|||||||cpu=8", "cpuuser|OverPartQOS|||||||cpu=16")
    asked = {"scontrol -o show assoc_mgr": OF_QOS}
    there = queue_of("cpuuser", **{f"{SHOW} qos": wide}, **asked).snapshot()
    assert there.open_nodes == 8
    assert there.left == 1  # of 12 cores, if it is a node of 8
    assert there.open_to(1) == 1
    assert there.open_to(2) == 2  # for a task that takes two, and waits
    full = OF_QOS.replace("16(4)", "16(16)")
    there = queue_of("cpuuser", **{f"{SHOW} qos": wide}, **dict.fromkeys(asked, full)).snapshot()
    assert (there.left, there.open_to(1)) == (0, 1)
    assert queue_of("cpuuser", **{f"{SHOW} qos": wide}).snapshot().left is None
