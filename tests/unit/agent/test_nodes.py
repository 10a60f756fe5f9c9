"""Jobs of several nodes, with an srun that runs everything here: the protocol, without a Slurm."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.unit.agent.jobs import Run, shell, task
from tests.waiting import PATIENCE_S, is_alive, read_pid, wait_until

from windrow.agent.event_file import (
    AgentLeft,
    AgentStarted,
    AttemptLost,
    AttemptStarted,
    TaskDeclined,
)
from windrow.agent.hosts import Hosts, find_hosts, queue_id
from windrow.errors import OutsideError, UserError

SRUN = """#!/bin/sh
while :; do
  case "$1" in
    --nodelist=*) export SLURMD_NODENAME="${1#--nodelist=}"; shift;;
    --*) shift;;
    *) break;;
  esac
done
test -e "$FAKE_SRUN/broken" && exit 1
echo $$ > "$FAKE_SRUN/$SLURMD_NODENAME.step"
exec "$@"
"""


@pytest.fixture
def cluster(run: Run, tmp_path: Path) -> Run:
    """A run under a queue that gives three nodes, the agent's not being the first named."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"srun": SRUN, "scontrol": "#!/bin/sh\nprintf 'n1\\nn2\\nn3\\n'\n"}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    run.extra_env |= {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "FAKE_SRUN": str(tmp_path),
        "SLURM_JOB_ID": "77",
        "SLURM_JOB_NODELIST": "n[1-3]",
        "SLURMD_NODENAME": "n2",
    }
    return run


@pytest.mark.slow
def test_tasks_run_on_every_node_and_say_what_they_printed(cluster: Run) -> None:
    tasks = [shell(n, "echo $SLURMD_NODENAME $WINDROW_NODES; sleep 0.3", cores=2) for n in range(6)]
    both = shell(6, "echo $SLURMD_NODENAME $WINDROW_NODES", nodes=2, expected_s=0.5)
    code, printed = cluster.run(*tasks, both, nodes=3)
    assert (code, printed) == (0, "")
    (started,) = cluster.of(AgentStarted)
    assert started.hosts == ("n2", "n1", "n3")
    assert started.queue_id == "77"
    assert sorted(cluster.finished()) == list(range(7))
    for event in cluster.of(AttemptStarted):
        where = [started.hosts[place] for place in event.of.nodes]
        expected = f"{where[0]} {','.join(where) if event.task == 6 else ''}".strip()
        assert cluster.folder.task_out(event.task, 1).read_text() == expected + "\n"
    assert {event.of.nodes[0] for event in cluster.of(AttemptStarted)} == {0, 1, 2}


@pytest.mark.slow
def test_failures_on_other_nodes_are_told_in_full(cluster: Run, tmp_path: Path) -> None:
    odd = 'it\'s "odd"\n$(x) \udcff'
    tasks = [
        task(n, "/bin/sh", "-c", 'printf %s "$1"; exit 4', "sh", odd, cores=2, retries=1)
        for n in range(3)
    ]
    cluster.run(*tasks, nodes=3)
    assert sorted((f.task, f.of.number, f.of.exit, f.final) for f in cluster.failed()) == [
        (n, a, 4, a == 2) for n in range(3) for a in (1, 2)
    ]
    assert {f.of.tail for f in cluster.failed()} == {odd.replace("\udcff", "\ufffd")}


@pytest.mark.slow
def test_a_file_of_another_node_may_come_late(cluster: Run, tmp_path: Path) -> None:
    """An output that shows up within the patience counts; an input that does so is waited for."""
    late = shell(
        0,
        "(sleep 0.6; echo x > late) & sleep 0.1",
        workdir=str(tmp_path),
        outputs=("late",),
        cores=2,
    )
    reader = shell(1, "cat early", workdir=str(tmp_path), inputs=("early",), cores=2)
    writer = shell(
        2, "sleep 0.6; echo y > early", workdir=str(tmp_path), outputs=("early",), cores=2
    )
    cluster.run(late, reader, writer, nodes=3, patience_s=PATIENCE_S)
    assert sorted(cluster.finished()) == [0, 1, 2]
    assert cluster.folder.task_out(1, 1).read_text() == "y\n"


@pytest.mark.slow
def test_a_file_that_does_not_come_is_waited_for_no_longer(cluster: Run, tmp_path: Path) -> None:
    never = shell(0, "true", workdir=str(tmp_path), outputs=("never",), expected_s=0.5)
    cluster.run(never, nodes=1, patience_s=0.5)
    assert [f.task for f in cluster.failed()] == [0]


@pytest.mark.slow
def test_a_lost_node_ends_the_job_but_not_what_runs_on_the_others(
    cluster: Run, tmp_path: Path
) -> None:
    script = (
        f"echo $$ > '{tmp_path}/'$SLURMD_NODENAME.pid; until test -e '{tmp_path}/go'; do "
        "sleep 0.05; done"
    )
    cluster.write(*(shell(n, script, cores=2) for n in range(5)), nodes=3)
    with cluster.begin() as agent:
        pids = {name: read_pid(tmp_path / f"{name}.pid") for name in ("n1", "n2", "n3")}
        os.kill(read_pid(tmp_path / "n1.step"), signal.SIGKILL)
        wait_until(lambda: bool(cluster.of(AttemptLost)))
        (tmp_path / "go").touch()
        agent.communicate(timeout=PATIENCE_S)
    (lost,) = cluster.of(AttemptLost)
    assert lost.why == "node n1 was lost"
    assert len(cluster.finished()) == 2
    assert [event.task for event in cluster.of(TaskDeclined)] == [3, 4]
    assert cluster.of(AgentLeft)
    wait_until(lambda: not any(map(is_alive, pids.values())))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["worker", "term"])
def test_nothing_runs_on_other_nodes_when_the_agent_is_gone(
    cluster: Run, tmp_path: Path, how: str
) -> None:
    script = (
        f"trap '' TERM; echo $$ > '{tmp_path}/'$SLURMD_NODENAME.pid; while :; do sleep 0.05; done"
    )
    cluster.write(*(shell(n, script, cores=2) for n in range(3)), nodes=3, grace_s=1.0)
    with cluster.begin() as agent:
        pids = [read_pid(tmp_path / f"{name}.pid") for name in ("n1", "n2", "n3")]
        os.kill(agent.pid, signal.SIGTERM) if how == "term" else os.kill(
            cluster.agent_pid(), signal.SIGKILL
        )
        agent.communicate(timeout=PATIENCE_S)
    assert agent.returncode == (143 if how == "term" else 137)
    wait_until(lambda: not any(map(is_alive, pids)))
    if how == "term":
        assert sorted(event.task for event in cluster.of(AttemptLost)) == [0, 1, 2]


@pytest.mark.slow
def test_nodes_that_do_not_answer_lose_nothing_silently(cluster: Run, tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    code, _ = cluster.run(*(shell(n, "sleep 0.2", cores=2) for n in range(4)), nodes=3)
    assert code == 0
    closed = {e.task for kind in (AttemptLost, TaskDeclined) for e in cluster.of(kind)}
    assert sorted([*cluster.finished(), *closed]) == [0, 1, 2, 3]
    assert len(cluster.finished()) == 1


@pytest.mark.slow
def test_an_unwritable_output_on_another_node_stops_the_job(cluster: Run) -> None:
    break_it = shell(
        0, f"sleep 0.3; rm -rf '{cluster.folder.out}'", expected_s=9, cores=2, children=(1, 2)
    )
    tasks = [shell(n, "sleep 0.1", parents=(0,), cores=2) for n in (1, 2)]
    code, printed = cluster.run(break_it, *tasks, nodes=2)
    assert code == 1
    assert "cannot be written: No such file" in printed
    assert cluster.finished() == [0]
    assert sorted(event.task for event in cluster.of(AttemptLost)) == [1, 2]


def test_without_a_queue_every_node_is_this_machine() -> None:
    here = os.uname().nodename
    assert find_hosts(2, {}) == Hosts((here, here), True, False)
    local = {"WINDROW_QUEUE": "local", "WINDROW_JOB_ID": "9"}
    assert find_hosts(1, {**local, "WINDROW_JOB_NODES": "3"}).names == (here,) * 3
    with pytest.raises(OutsideError, match="needs 2 nodes, but the queue gave it 1"):
        find_hosts(2, {**local, "WINDROW_JOB_NODES": "1"})


@pytest.mark.parametrize(
    "outer", [{"SLURM_JOB_ID": "12", "SLURM_JOB_NODELIST": "n[1-4]"}, {"PBS_JOBID": "5.head"}]
)
def test_a_local_queue_inside_an_allocation_is_local(outer: dict[str, str]) -> None:
    """`windrow run` in an interactive session of a cluster: its jobs carry the session's variables,
    too."""
    inner = {**outer, "WINDROW_QUEUE": "local", "WINDROW_JOB_ID": "9", "WINDROW_JOB_NODES": "2"}
    assert find_hosts(2, inner) == Hosts((os.uname().nodename,) * 2, True, False)
    assert queue_id(inner) == "9"


def test_pbs_gives_one_node() -> None:
    assert find_hosts(1, {"PBS_JOBID": "5.head"}).is_cluster
    with pytest.raises(UserError, match="not supported under PBS"):
        find_hosts(2, {"PBS_JOBID": "5.head"})


def test_queue_ids_are_written_as_the_queue_writes_them() -> None:
    assert (
        queue_id({"SLURM_JOB_ID": "12", "SLURM_ARRAY_JOB_ID": "10", "SLURM_ARRAY_TASK_ID": "3"})
        == "10_3"
    )
    assert queue_id({"SLURM_JOB_ID": "12"}) == "12"
    assert queue_id({"PBS_JOBID": "5.head"}) == "5.head"
    assert queue_id({}) == ""


def test_parts_of_nodes_are_on_the_machines_that_slurm_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\nprintf 'n1\\nn2\\nn3\\n'\n")
    scontrol.chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    slurm = {"SLURM_JOB_ID": "5", "SLURM_JOB_NODELIST": "n[1-3]", "SLURMD_NODENAME": "n2"}
    hosts = find_hosts(5, {**slurm, "SLURM_TASKS_PER_NODE": "2(x2),1"}, part_cores=3)
    assert hosts.names == ("n2", "n2", "n1", "n1", "n3")
    assert [hosts.machine(place) for place in range(5)] == [0, 0, 2, 2, 4]
    assert [hosts.before(place) for place in range(5)] == [0, 1, 0, 1, 0]
    assert {"--cpus-per-task=6", "--nodelist=n1"} <= {*hosts.launch(2)}
    with pytest.raises(OutsideError, match="needs 6 nodes, but the queue gave it 5"):
        find_hosts(6, {**slurm, "SLURM_TASKS_PER_NODE": "2(x2),1"}, part_cores=3)
