"""A run with volumes: what is refused before it starts, and what becomes of one whose volume is
lost."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.examples import some
from tests.waiting import wait_until

from windrow.app.adding import add_tasks, prepare_addition
from windrow.app.continuing import standing
from windrow.app.execute import drive, managed, prepare, start_run
from windrow.app.facts import RunRequest
from windrow.app.runs import RunView
from windrow.errors import UserError
from windrow.story.states import AttemptState

LOST = """
volumes: { work: { scratch: 1MB } }
tasks:
  - { id: a, command: "echo x > $WINDROW_VOLUME_WORK/x", mounts: [work], runtime: 1s }
  - { id: wipe, command: "rm -rf .windrow-volumes/lost/work.1", after: a, runtime: 1s }
  - id: b
    command: cat $WINDROW_VOLUME_WORK/x > $WINDROW_VOLUME_WORK/y
    mounts: [work]
    after: wipe
    runtime: 1s
    extract: { work/y: result }
"""


@pytest.fixture
def order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunRequest:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WINDROW_HISTORY", str(tmp_path / "history"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "lost.yaml").write_text(LOST)
    return RunRequest(tmp_path / "lost.yaml")


@pytest.mark.slow
def test_what_only_a_lost_volume_held_is_made_again(order: RunRequest, tmp_path: Path) -> None:
    """Task b has no retries, and needs none."""
    paths = start_run(prepare(order))
    with managed(paths) as manager:
        manager.begin()
        drive(manager)
    view = RunView(paths)
    view.refresh()
    outcomes = [[attempt.outcome for attempt in task.attempts] for task in view.story.tasks]
    lost, done = AttemptState.LOST, AttemptState.FINISHED
    assert outcomes == [[done, done], [done], [lost, done]]
    assert view.story.tasks[2].attempts[0].cause == "volume lost"
    assert (tmp_path / "result").read_text() == "x\n"
    assert list((tmp_path / ".windrow-volumes" / "lost").iterdir()) == [], (
        "no volume outlives its run"
    )


@pytest.mark.slow
def test_a_run_with_volumes_on_disks_of_nodes_is_up_to_date_when_it_is_complete(
    order: RunRequest, tmp_path: Path
) -> None:
    (tmp_path / "lost.yaml").write_text(LOST.replace("rm -rf .windrow-volumes/lost/work.1", "true"))
    paths = start_run(prepare(replace(order, scratch=str(tmp_path / "disk"))))
    with managed(paths) as manager:
        manager.begin()
        drive(manager)
    told = RunView(paths)
    assert told.story.is_complete
    assert standing(told).is_up_to_date
    (tmp_path / "more.yaml").write_text(
        LOST.replace("rm -rf .windrow-volumes/lost/work.1", "true")
        .replace("id: ", "id: m")
        .replace("after: ", "after: m")
        .replace("result", "more")
    )
    add_tasks(told, prepare_addition(told, tmp_path / "more.yaml"))
    assert standing(told).is_same, "what was added has its room"
    (tmp_path / "lost.yaml").write_text(
        LOST.replace("rm -rf .windrow-volumes/lost/work.1", "true").replace("1MB", "2MB")
    )
    assert not standing(told).is_same, "it needs more room"


REPLICAS = """
volumes: { work: { scratch: 1MB, replicas: RULE }, db: { from: db, size: 1MB } }
tasks:
  - { id: a, command: "cp $WINDROW_VOLUME_DB/x $WINDROW_VOLUME_WORK/x", mounts: [work, db], runtime: 1s }
  - { id: b, command: "echo y >> $WINDROW_VOLUME_WORK/x", mounts: [work], after: a, runtime: 1s }
  - id: c
    command: |
      [ -e NODE/died ] || {
        touch NODE/died
        until grep -q 'task-TOLD' .windrow/runs/*/jobs/0/events; do sleep 0.1; done
        kill -9 $(ps -o ppid= $PPID)
        sleep 9
      }
      cat $WINDROW_VOLUME_WORK/x > $WINDROW_VOLUME_WORK/y
    mounts: [work]
    after: b
    runtime: 1s
    extract: { work/y: result }
"""  # noqa: E501


@pytest.mark.slow
@pytest.mark.parametrize("rule", some("always", "never", "cost-benefit"))
def test_tasks_run_again_from_the_last_replica_of_a_lost_volume(
    rule: str, order: RunRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The agent is killed while c runs, when it has told of the copies that there will be. With it
    goes what is on its node."""
    told = {"always": "committed.*:1,", "cost-benefit": "committed.*:0,", "never": "started"}
    node = tmp_path_factory.mktemp("node")
    (tmp_path / "db").mkdir()
    (tmp_path / "db" / "x").write_text("x\n")
    order.workflow.write_text(
        REPLICAS.replace("RULE", rule).replace("NODE", str(node)).replace("TOLD", told[rule])
    )
    paths = start_run(prepare(replace(order, scratch=str(node))))
    with managed(paths) as manager:
        manager.begin()
        drive(manager)
    view = RunView(paths)
    view.refresh()
    assert (tmp_path / "result").read_text() == "x\ny\n"
    attempts = [len(task.attempts) for task in view.story.tasks]
    if rule == "cost-benefit":  # b leaves a copy, too, if it ends before that of a is measured
        assert attempts in ([1, 1, 2], [1, 2, 2])
    else:
        assert attempts == ([2, 2, 2] if rule == "never" else [1, 1, 2])
    assert not [*tmp_path.rglob("work.*")], "nothing is left"
    wait_until(
        lambda: not [*node.glob("windrow-*")]
    )  # removed when all processes of the job are gone


def test_what_cannot_work_is_refused(
    order: RunRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert prepare(order).notes == (
        "volume work: 1 x 1 MB of scratch, mounted by 2 tasks, on the shared file system",
    )
    text = LOST.replace("[work]", "{/nowhere/w: work}").replace(
        "work/y: result", "/nowhere/w/y: result"
    )
    order.workflow.write_text(text)
    monkeypatch.setattr("windrow.agent.data.mounts.can_mount", lambda: False)
    with pytest.raises(
        UserError,
        match="a mounts a volume at a path, but this machine does not let users mount anything; "
        "write",
    ):
        prepare(order)
    order.workflow.write_text(LOST)
    (tmp_path / "windrow.toml").write_text('[queues.local]\ndisk = "1500kB"\n')
    prepare(order)  # they are on the shared file system
    order = replace(order, scratch="/tmp/x")
    with pytest.raises(
        UserError, match=r"task b needs 1.9 MiB of disk; windrow.toml allows 1.4 MiB"
    ):
        prepare(order)
    (tmp_path / "windrow.toml").write_text('[queues.local]\ndisk = "2MB"\n')
    workflow = prepare(order).runnable.workflow
    assert workflow.disk_bytes.tolist() == [1_000_000, 0, 2_000_000]
    assert workflow.runtime_s.tolist() == [1.005, 1.0, 1.01], "copies take time"
    order.workflow.write_text(
        LOST.replace("{ scratch: 1MB }", "{ from: 'https://x.org/a', size: 1MB }").split("extract")[
            0
        ]
    )
    with pytest.raises(
        UserError, match="the files of volume work come from a URL; set scratch under"
    ):
        prepare(replace(order, scratch=""))
