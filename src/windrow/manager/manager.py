"""The shell around the core: journals what is heard of the jobs; what the core wants is done at
each site (`outpost`).

Rule 1: an event is on disk before the core hears of it. Rule 2: a job is in the journal before it
is submitted, so a manager that finds one without an id asks the queue for its tag before it submits
it.
Rule 3: everything here can be killed at any point; `restore` and `begin` continue from there.
"""

from __future__ import annotations

import time
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from windrow.agent import event_file
from windrow.agent.folder import RunFolder
from windrow.errors import UserError
from windrow.manager.beliefs import AtSite
from windrow.manager.core import Core
from windrow.manager.dispatch import Dispatch
from windrow.manager.inbox import LATE_S, PATIENCE_S, GivenUp, Placed, next_look_s
from windrow.manager.outpost import Outpost
from windrow.manager.terms import NO_COPIES, CopyRules
from windrow.model import Runnable
from windrow.model.cause import Cause
from windrow.model.rules import PLAIN
from windrow.story import events as e
from windrow.story import translate
from windrow.story.events import Abandon, Action, Decide, Rank, StopJob, SubmitJob
from windrow.story.journal import NO_WORDS, QueueWords, Record, RunJournal
from windrow.story.lost_files import LostFile, is_gone_from, lost_files, unfinished
from windrow.strategies.base import Objective, Strategy

if TYPE_CHECKING:
    from windrow.manager.copying import Copying
    from windrow.manager.expanding import Expanding, Fragments
    from windrow.manager.holding import Holding
    from windrow.manager.moving import Moving
    from windrow.manager.transfers import Transfers


@dataclass
class Manager:
    """Runs one workflow on one or several sites. Give it to one process at a time (see `lock`)."""

    folder: RunFolder
    journal: RunJournal
    core: Core
    strategy: Strategy
    dispatch: Dispatch
    outposts: Sequence[Outpost]
    """One for each site of the core, in its order."""
    on_records: Callable[[Sequence[Record]], None] = lambda _: None
    objective: Objective = "makespan"
    """What decides between sites."""
    now_s: Callable[[], float] = time.time
    steady_s: Callable[[], float] = time.monotonic
    begun_s: float | None = None
    transfers: Transfers | None = None
    """Where sites do not all see the same files."""
    patience_s: float = PATIENCE_S
    """How long after a job's end its agent's last words may take to show up if the run's folder
    is."""
    copies: CopyRules = NO_COPIES
    """When tasks that run get copies."""
    fragments: Callable[[Manager], Fragments] | None = None
    """What reads the files in which tasks say what comes after them."""
    expanding: Expanding | None = None
    moving: Moving | None = None
    copying: Copying | None = None
    held: e.RunHeld | None = None
    """Who keeps the run open for tasks to come."""
    _holding: Holding | None = None
    _volume_lost: bool = False  # whether a task found that what it needs of a volume is gone
    _queue_words: QueueWords = NO_WORDS

    def __post_init__(self) -> None:
        for outpost, at in zip(self.outposts, self.core.sites, strict=True):
            outpost.join(self, at)
        if self.transfers is not None:
            self.transfers.join(self)
        if len(self.outposts) > 1:
            from windrow.manager.moving import Moving  # noqa: PLC0415  (most runs have one site)

            self.moving = Moving(self)
        if self.dispatch.scratch:
            self.core.held_up = self._readers_of_nodes
        if self.dispatch.offers:
            from windrow.manager.copying import Copying  # noqa: PLC0415  (and no copies)

            self.copying = Copying(
                self.core, self.copies, lambda: self.dispatch.runnable.steps, self.dispatch.may_copy
            )
            self.copying.wait_s = lambda at, nodes, run_s: self._of(at).wait_s(nodes, run_s)

    @property
    def placed(self) -> Mapping[int, Placed]:
        """The jobs that are in the core, at whatever site."""
        return ChainMap(*(outpost.placed for outpost in self.outposts))

    @property
    def trouble_with_queue(self) -> str:
        """What keeps jobs from being submitted or heard of, while it lasts."""
        told = [outpost.trouble for outpost in self.outposts] + [
            self.transfers.trouble if self.transfers else ""
        ]
        return "; ".join(trouble for trouble in told if trouble)

    @property
    def is_over(self) -> bool:
        """Whether nothing more will be done: no task, no job, and no file to be moved or read."""
        if self.expanding is not None and self.expanding.is_waiting:
            return False
        return self.core.is_over and (self.transfers is None or self.transfers.is_settled)

    def next_look_s(self, *, happened: bool) -> float:
        """How long to sleep before agents are listened to again; `happened`: one of them spoke."""
        return next_look_s(len(self.placed), happened=happened)

    def restore(self) -> None:
        """Replay the journal. Nothing is asked, and nothing done but fences that may be missing.

        What was wanted and may not have been done is wanted again.
        """
        offsets = self.journal.offsets()
        homes = dict[int, Outpost]()
        for _, record in self.journal.records():
            self._give_up(record)
            for action in self.core.handle(record.event):
                if isinstance(action, SubmitJob):
                    homes[action.job] = outpost = self._of(self.core.at(action.plan.site))
                    outpost.follow(action.job, offsets.get(action.job, 0))
            self._note(record)
        for prediction in self.journal.predictions():
            homes[prediction.job].predictions.said.append(prediction)
        for outpost in self.outposts:
            outpost.restored()
        self._queue_words = QueueWords.read(self.journal.facts())

    def begin(self, again: Iterable[int] = (), *, retry: bool = True) -> list[LostFile]:
        """Begin, or continue after any kind of end. Returned: why tasks that had finished run
        again, if any do.

        What agents said while no manager listened belongs to what was before: what failed then is
        tried again now, if the user asks for a `retry`.
        """
        self.listen()
        if self.core.submitted in self.folder.numbers():
            from windrow.manager.forgotten import recover  # noqa: PLC0415  (few journals lack anything)

            recover(self)
        self._void_places()
        now = self.now_s()
        self.take_in([Record(e.RunBegan(int(now), retry), at_s=now)])
        self.follow_holds(at_once=True)
        # who was killed may not have told the agents
        if self.core.cancelled:
            self.dispatch.abandon(Abandon(tuple(sorted(self.core.cancelled)), ends=True))
        if back := self.core.called_back():
            self.dispatch.abandon(Abandon(back, again=True))
        self.dispatch.rank(self.core.ranked)
        lost = self.run_again(again)
        self.dispatch.delete(
            self.core.temporary, self.core.temporary.gone
        )  # who was killed may have said it only
        return lost

    def run_again(self, tasks: Iterable[int]) -> list[LostFile]:
        """Run these tasks again though they have finished or failed, and whatever must run for what
        is left.

        Of a complete run those run whose results are gone. Returned: the tasks that had finished,
        and why they run.
        """
        core = self.core
        self.undo([LostFile(task) for task in tasks if core.is_done(task) or task in core.failed])
        lost = self._undo_lost()
        self._act_on_wishes()
        return lost

    def _in_no_job(self) -> list[int]:
        """Tasks that are not done, and needed."""
        core = self.core
        tasks = (task for task, job in enumerate(core.job_of) if job is None)
        return [task for task in tasks if not core.is_done(task) and task not in core.skipped]

    def _undo_lost(self, added: Iterable[int] | None = None) -> list[LostFile]:
        """Let the makers of files run again that are gone, and that tasks read which are in no
        job; or those that were `added`."""
        core = self.core
        left = self._in_no_job() if added is None else list(added)
        is_away = is_gone_from
        if self.transfers is not None:
            self.transfers.look_for_files()
            is_away = self.transfers.is_gone
        local = self.dispatch.local.at
        gone = core.temporary.gone | core.temporary.void

        def is_gone(workdir: str, name: str) -> bool:
            # What was deleted may have come back, by an agent that was late; it will go again.
            return name in gone or (name not in local and is_away(workdir, name))

        lost = lost_files(
            self.dispatch.runnable,
            left,
            core.is_done,
            is_gone,
            results=core.is_complete and added is None,
        )
        self.undo(lost)
        return lost

    def make_room(self) -> None:
        """Before a job is planned within a limit on space, while there is none: only what it counts
        with is there.

        Agents that were killed left drafts, and an agent deletes what its tasks were the last to
        read, also if a task of an earlier job that reads it was undone meanwhile.
        """
        self.dispatch.clean_up(self.core)
        self._undo_lost()

    def add(self, added: e.TasksAdded) -> None:
        """Add tasks to the run, once however often it is asked. The next `step` or `begin` acts
        upon it.

        UserError if they do not go with the run, or would never fit; then nothing has changed.
        """
        if added.id in self.core.additions:
            return
        now = self.now_s()
        event = replace(added, at_s=int(now))
        first = len(self.core.work.workflow)
        if not event.added.tasks:
            self.take_in([Record(event, at_s=now)])
            return
        grown = self.core.extended(event)[0].workflow
        if self.transfers is not None:
            steps = (*self.dispatch.runnable.steps, *added.added.steps)
            self.transfers.paths_with(Runnable(grown, steps))
        self.take_in([Record(event, at_s=now)])
        self._undo_lost(range(first, len(grown)))

    def cancel(self, tasks: Sequence[int], *, to_amend: bool = False) -> None:
        """Let these tasks run no more: what runs of them ends, and what needs them is blocked."""
        now = self.now_s()
        cancelled = e.TasksCancelled(int(now), tuple(tasks), to_amend)
        self.take_in([Record(cancelled, at_s=now)])

    def rank(self, tasks: Sequence[int], priority: int) -> None:
        """Give these tasks another priority, wherever they are."""
        now = self.now_s()
        self.take_in([Record(e.TasksRanked(int(now), tuple(tasks), priority), at_s=now)])

    def amend(self, changed: e.TasksAmended) -> bool:
        """Change tasks that do not run; whether it is done: some may have to leave their jobs
        first.

        UserError if one has finished or runs, or it would not go with the run; then nothing has
        changed.
        """
        core = self.core
        if changed.id in core.additions:
            return True
        core.amended(changed)
        workflow = core.work.workflow
        tasks = [workflow.number(task.id) for task in changed.now.tasks]
        self._refuse_begun(tasks)
        if placed := [task for task in tasks if core.job_of[task] is not None]:
            self.cancel(placed, to_amend=True)
        if any(core.recalled.get(task) for task in tasks):
            return False
        now = self.now_s()
        self.take_in([Record(replace(changed, at_s=int(now)), at_s=now)])
        self._undo_lost(tasks)
        return True

    def _refuse_begun(self, tasks: Sequence[int]) -> None:
        core = self.core
        for task in tasks:
            name = core.work.workflow.ids[task]
            if core.is_done(task):
                raise UserError(f"task {name} has finished; windrow retry {name} runs it again")
            jobs = (core.jobs[number] for number in core.copies.jobs_of(task))
            if any(task in job.running_since_s for job in jobs):
                raise UserError(f"task {name} runs; cancel it first, then change it")

    def undo(
        self,
        lost: Sequence[LostFile],
        gone: Mapping[str, int] = MappingProxyType({}),
        what: Sequence[Record] = (),
    ) -> None:
        """Let the makers of these files run again, and whatever made what they read and was deleted
        since.

        `what` has just happened, and these files are `gone` with it, each made by a task.
        """
        now = self.now_s()
        files = self.core.temporary
        done = self.core.is_done
        again = {one.maker: one for one in lost}
        stack = list(again)
        while stack:
            reader = stack.pop()
            makers = {files.maker[name]: name for name in files.missing_for(reader)}
            if gone:
                read = self.core.work.workflow.task(reader).inputs
                makers |= {gone[name]: name for name in read if name in gone}
            stack += [maker for maker in makers if maker not in again and done(maker)]
            new = [maker for maker in stack if maker not in again]
            again |= {maker: LostFile(maker, makers[maker], reader) for maker in new}
        undone = [
            Record(e.TaskUndone(int(now), one.maker), asdict(one), now) for one in again.values()
        ]
        if what or undone:
            self.take_in([*what, *undone])

    def reconsider(self) -> None:
        """Tasks may be planned that were held up."""
        for action in self.core.reconsidered():
            self._wish(action)

    def _readers_of_nodes(self) -> set[int]:
        """Who reads what is on nodes of a job alone, which comes to the shared files or goes with
        the job."""
        readers = self.dispatch.staying.readers
        there = (name for name, job in self.dispatch.local.at.items() if job in self.core.jobs)
        return {reader for name in there for reader in readers.get(name, ())}

    def _open_readers(self, names: Iterable[str]) -> dict[str, int]:
        """Of these files, those that a task reads which is to run yet; with such a task."""
        core = self.core
        out = core.failed | core.blocked
        readers = (
            (name, reader)
            for name in names
            for reader in sorted(self.dispatch.staying.readers.get(name, ()))
        )
        return {
            name: reader
            for name, reader in readers
            if not core.is_done(reader) and reader not in out
        }

    def _void_places(self) -> None:
        """What was on nodes of jobs that are over is gone; what open tasks read of it is made
        again."""
        core = self.core
        now = self.now_s()
        for job, gone in self.dispatch.local.void(core.jobs).items():
            needed = self._open_readers(gone)
            lost = [LostFile(gone[name], name, reader) for name, reader in needed.items()]
            event = e.FilesGone(int(now), e.job_place(job), tuple(gone), job)
            self.undo(lost, gone, [Record(event, at_s=now)])

    def follow_holds(self, *, at_once: bool = False) -> None:
        """Stay open for tasks to come as long as someone wants it."""
        holding = self._holders()
        if holding is None:
            return
        now = self.now_s()
        told = holding.look(self.held, int(now), self.steady_s(), at_once=at_once)
        if told is not None:
            self.take_in([Record(told, at_s=now)])

    def _holders(self) -> Holding | None:
        """Who keeps this run open; None if no one ever has."""
        if self._holding is None and (self.held is not None or self.folder.holds.is_dir()):
            from windrow.manager.holding import Holding  # noqa: PLC0415  (few runs are held)

            self._holding = Holding(self.folder.holds)
        return self._holding

    def stop(self) -> None:
        """Stop the run: its jobs leave the queue or end; what is done stays done."""
        now = self.now_s()
        stopped = [Record(e.RunStopped(int(now)), at_s=now)]
        if holding := self._holders():
            holding.end_all()
        if self.held is not None:
            stopped.append(Record(e.RunClosed(int(now), "the run was stopped"), at_s=now))
        self.take_in(stopped)
        self._act_on_wishes()

    def due_s(self) -> float:
        """When to `step` again though no agent speaks, by the steady clock."""
        due = [
            one.due_s() for one in (*self.outposts, self.transfers, self.moving) if one is not None
        ]
        if self.copying is None:
            copies = []
        else:
            copies = [self.steady_s() + self.copying.next_s - self.now_s()]
        return min([*due, *copies])

    def step(self) -> bool:
        """Look once at everything and act. Returns whether anything happened."""
        happened = self.listen()
        self.follow_holds()
        self._void_places()
        if (
            self.core.is_complete and self.core.is_over
        ):  # no process writes any more: is everything whole that counts as finished?
            again = [task for task, started in self.dispatch.attempts.items() if started > 1]
            self.undo(unfinished(self.dispatch.runnable, again))
        if self._volume_lost:
            self._volume_lost = False
            self.run_again(())
        if self.transfers is not None:
            happened |= self.transfers.step()
        if self.expanding is not None:
            happened |= self.expanding.step()
        if self.moving is not None:
            self.moving.look()
        now = self.now_s()
        if self.copying is not None and (decision := self.copying.decide(int(now))).jobs:
            self.take_in(
                [Record(e.JobsPlanned(int(now), decision, decision.jobs[0].site), at_s=now)]
            )
        self._act_on_wishes()
        # All who tell of the run are to know why its jobs wait: the queue's latest words, written
        # where they change.
        reasons = {
            number: why for outpost in self.outposts for number, why in outpost.reasons.items()
        }
        notes = [
            note
            for outpost in self.outposts
            if outpost.guard is not None
            for note in outpost.guard.notes
        ]
        if self.transfers is not None:
            notes += self.transfers.kept
        words = QueueWords(self.trouble_with_queue, reasons, tuple(notes))
        if words != self._queue_words:
            self.journal.set_fact("queue_words", words)
            self._queue_words = words
        return happened

    def listen(self) -> bool:
        """Take in all that is new. Returns whether anything is."""
        happened = False
        if self.transfers is not None:
            self.transfers.look()
        for outpost in self.outposts:
            outpost.follow_claims()
            records, offsets = outpost.hearing.listen()
            if self.transfers is not None:
                records = [self.transfers.explained(record) for record in records]
            if records:
                self.take_in(records, offsets)
                happened = True
        return happened

    def heard(self) -> dict[int, int]:
        """How much of each job's events is known, those of jobs that were given up among them."""
        heard = {
            n: job.tail.offset for outpost in self.outposts for n, job in outpost.placed.items()
        }
        given_up = (job for outpost in self.outposts for job in outpost.hearing.given_up.items())
        return heard | {n: job.tail.offset for n, job in given_up}

    def take_in(self, records: Sequence[Record], offsets: dict[int, int] | None = None) -> None:
        """Journal, then believe. Decisions wait until all has been heard."""
        self.journal.append(records, offsets)
        for record in records:
            self._give_up(record)
            for action in self.core.handle(record.event):
                self._wish(action)
            self._note(record)
        self.on_records(records)

    def _give_up(self, record: Record) -> None:
        """Fence a job that is over without a word of its agent, before its tasks are planned again;
        and one that its queue refused, which another agent may take over.

        The holder of the claim may be alive, and is listened to. (The fence comes first: an agent
        claims, then looks for it.)
        """
        if not (translate.is_given_up(record) or isinstance(record.event, e.JobRejected)):
            return
        assert isinstance(record.event, e.JobKilled | e.JobEnded | e.JobRejected)
        number = record.event.job
        self.dispatch.fence(self.core, number)
        at = self.core.jobs[number].at
        plan = self.core.jobs[number].plan
        outpost = self._of(at)
        job = outpost.placed.get(number)
        if job is not None and (job.is_started or outpost.folder.claim(number).exists()):
            walltime_s = at.site.walltime_s(plan.requested_s)
            until_s = float("inf")
            if walltime_s is not None:
                until_s = record.event.at_s + walltime_s + LATE_S
            outpost.hearing.given_up[number] = GivenUp(job.tail, until_s)

    def _note(self, record: Record) -> None:
        """Keep the shell's own picture of the jobs, and of the files."""
        match event := record.event:
            case e.RunBegan():
                self.begun_s = event.at_s if self.begun_s is None else self.begun_s
            case e.RunHeld():
                self.held = event
            case e.RunClosed():
                self.held = None
            case e.TaskStarted():
                number = record.attempt.number if record.attempt else 1
                self.dispatch.count_attempt(event.task, number)
            case e.TaskFinished() | e.TaskKept():
                made = self.core.work.workflow.outputs.of(event.task).tolist()
                self.dispatch.sizes |= zip(
                    made, record.attempt.sizes if record.attempt else (), strict=False
                )
            case e.TaskUndone():
                self.dispatch.undone[event.task] += 1
            case e.TaskDropped():
                lost = record.attempt
                self._volume_lost |= lost is not None and lost.cause == Cause.VOLUME
            case e.TasksAmended():
                now = event.now
                self.dispatch.amend(self.core.work.workflow, now.tasks, now.steps)
            case e.TasksAdded():
                self.dispatch.extend(self.core.work.workflow, event.added.steps)
            case (
                e.JobSubmitted()
                | e.JobStarted()
                | e.JobTaken()
                | e.JobEnded()
                | e.JobKilled()
                | e.JobRejected()
            ):
                for outpost in self.outposts:
                    if event.job in outpost.placed:
                        outpost.note(event)
            case _:
                pass
        self.dispatch.local.note(record)
        if self.transfers is not None:
            self.transfers.note(record)
        if self.fragments is not None:
            self._note_makers(record.event, self.fragments)

    def _note_makers(self, event: e.Event, fragments: Callable[[Manager], Fragments]) -> None:
        """Follow the tasks that say what comes after them."""
        rules = self.core.work.workflow.rules
        if not rules and self.expanding is None:
            return
        if isinstance(event, e.TaskEvent):
            concerns = bool(rules.get(event.task, PLAIN).expands)
        else:
            concerns = isinstance(event, e.TasksAdded) and bool(event.maker)
        if not concerns:
            return
        if self.expanding is None:
            from windrow.manager.expanding import Expanding  # noqa: PLC0415  (few runs need it)

            self.expanding = Expanding(self, fragments(self))
        self.expanding.note(event)

    def _wish(self, action: Action) -> None:
        match action:
            case Decide():
                self._of(self.core.at(action.site)).wants_decision = True
            case SubmitJob():
                outpost = self._of(self.core.at(action.plan.site))
                outpost.placed[action.job] = Placed(
                    event_file.Tail(outpost.folder.events(action.job)), is_doubtful=False
                )
            case StopJob():
                self._of(self.core.jobs[action.job].at).wants_stop.append(action.job)
            case Abandon():
                self.dispatch.abandon(action)
            case Rank():
                self.dispatch.rank(dict.fromkeys(action.tasks, action.priority))

    def _of(self, at: AtSite) -> Outpost:
        return next(outpost for outpost in self.outposts if outpost.at is at)

    def _delete_what_is_due(self) -> None:
        """Files that nothing needs any more: it is in the journal before they go. With several
        places: in the end."""
        local = self.dispatch.local.at
        waiting = self.core.temporary.due
        now = self.now_s()
        due = tuple(waiting)
        if local:
            from windrow.storage.volumes import is_backup  # noqa: PLC0415  (few runs have volumes)

            due = tuple(name for name in waiting if not is_backup(name, local, waiting))
        if due and (
            self.transfers is None or (self.core.is_complete and self.transfers.is_settled)
        ):
            self.take_in([Record(e.FilesGone(int(now), "", due), at_s=now)])
            self.dispatch.delete(self.core.temporary, due)

    def _act_on_wishes(self) -> None:
        self._delete_what_is_due()
        for outpost in self.outposts:
            outpost.act()
        for outpost in (
            self.outposts
        ):  # what one decided is for another to submit; and jobs sent late held decisions up
            if len(self.outposts) > 1 or outpost.wants_decision:
                outpost.act()
