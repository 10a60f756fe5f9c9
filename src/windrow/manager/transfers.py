"""The files of a run whose sites do not all see the same ones: moved, announced, brought home,
cleaned up.

Rule 1: files move while jobs wait: a job is submitted at once, and its agent waits for those of its
inputs that are not there. The manager tells it when they are (`RunFolder.arrived`): by the number
of the task that made them, or, of files that no task makes, by one number for all of its job. So
nothing that depends on another place starts without a manager.
Rule 2: what arrived is in the journal before it is announced. What was on its way when a manager
died is moved again.
Rule 3: results, which no task reads, come home when they are made. Once all are home, the run's
folders elsewhere go; after twice `SILENT_S` without an answer they stay.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from windrow.agent.order import absolute
from windrow.data.catalogue import HOME, Catalogue, Paths, paths_of
from windrow.data.mirror import Mirror
from windrow.data.rsync import FileMover, MovedFiles, MoveFiles
from windrow.errors import OutsideError
from windrow.files import append_lines
from windrow.manager import moving
from windrow.manager.inbox import PollTimes
from windrow.model import Runnable
from windrow.model.attempt import Attempt
from windrow.queues.port import QueueError
from windrow.story import events as e
from windrow.story.journal import Record
from windrow.story.lost_files import LostFile, is_gone_from, lost_files

if TYPE_CHECKING:
    from windrow.manager.manager import Manager

Link = tuple[str, str]


@dataclass(eq=False)
class Transfers:
    """What a manager does about files. `mirrors`: the places beside home, by name."""

    catalogue: Catalogue
    mirrors: Mapping[str, Mirror]
    mover: FileMover
    keep: Callable[[], None] = lambda: None
    """Remembers what was learned of links, for other runs."""
    run: Manager = field(init=False)
    under_way: dict[Link, set[str]] = field(default_factory=dict)
    """What is being moved; without files that were undone meanwhile."""
    troubles: dict[Link, str] = field(default_factory=dict)
    _paces: dict[object, PollTimes] = field(default_factory=dict)
    _announced: dict[str, set[int]] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)  # places that have something of the run
    _in_vain: set[int] = field(default_factory=set)
    """Tasks that came back from jobs in which they waited for files that were on their way: these
    come without a job, and none waits for them meanwhile."""
    _gone: set[str] = field(default_factory=set)  # of what tasks made; it may be made again since
    _left_since_s: dict[str, float] = field(
        default_factory=dict
    )  # since when a place could not be cleaned up
    _changed: bool = True
    kept: list[str] = field(default_factory=list)
    """What was at home under the names of results, and where it is now: for the user."""
    _ways: set[str] = field(default_factory=set)
    """Where results were under way to, at home."""

    def join(self, run: Manager) -> None:
        """Become that part of the run which deals with files."""
        self.run = run
        run.dispatch.transfers = self
        run.core.held_up = self._held_up
        for place, mirror in self.mirrors.items():
            mirror.jobs = partial(self._jobs, place)
            mirror.begin(run.folder.out)

    def _jobs(self, place: str) -> list[int]:
        """The jobs there whose agents may have something to say."""
        posts = [outpost for outpost in self.run.outposts if outpost.at.site.files == place]
        return sorted(
            {number for post in posts for number in (*post.placed, *post.hearing.given_up)}
        )

    @property
    def trouble(self) -> str:
        """What keeps files from moving, while it lasts."""
        told = (
            f"files from {a or 'here'} to {b or 'here'}: {why}"
            for (a, b), why in self.troubles.items()
        )
        return "; ".join(
            [*told, *(mirror.trouble for mirror in self.mirrors.values() if mirror.trouble)]
        )

    @property
    def is_settled(self) -> bool:
        """Whether a run whose jobs are over has nothing left to move or to clean up."""
        core = self.run.core
        if core.is_stopped or core.trouble:
            return True
        return not (
            self.under_way or self.catalogue.results or (core.is_complete and self._to_clean)
        )

    @property
    def _to_clean(self) -> list[str]:
        """Places that have something of the run, and nothing that stays there."""
        is_at = self.catalogue.is_at
        stays = self.catalogue.paths.stays
        return sorted(
            place for place in self._used if not any(is_at(path, place) for path in stays)
        )

    def _held_up(self) -> list[int]:
        return [task for task in self._in_vain if self._is_coming(task, self._place_of(task))]

    def _place_of(self, task: int) -> str:
        """Where a task that is in no job is to read its files."""
        return self.run.core.sites[self.run.core.site_of[task]].site.files

    def _is_coming(self, task: int, place: str) -> bool:
        """Whether what the task lacks there is elsewhere, and nothing keeps it from moving."""
        lacking = self.catalogue.lacking(task, place)
        if not lacking or any(map(self.catalogue.is_nowhere, lacking)):
            return False
        links = {self.catalogue.link(path, place) for path in lacking}
        return links.isdisjoint(self.troubles)

    def explained(self, record: Record) -> Record:
        """The same; of a task that was dropped while its files are on their way, with that."""
        event = record.event
        if not isinstance(event, e.TaskDropped) or event.job not in self.run.core.jobs:
            return record
        at = self.run.core.jobs[event.job].at
        if len(at.group) > 1 or not self._is_coming(event.task, at.site.files):
            return record
        return replace(record, event=replace(event, lacks_files=True))

    def waits_for(self, task: int, job: int, place: str) -> set[int]:
        """What a job there must be told of before the task can start: makers of files, or one
        number for all others."""
        sources = {
            self.catalogue.maker.get(path, -job - 1) for path in self.catalogue.lacking(task, place)
        }
        self._announced.setdefault(place, set()).difference_update(
            sources | set(self._parents(task))
        )
        self._changed = True
        return sources

    def is_home(self, path: str) -> bool:
        """Whether a file that a task made is at home."""
        return self.catalogue.is_at(os.path.relpath(path, self.catalogue.paths.root), HOME)

    def is_gone(self, workdir: str, name: str) -> bool:
        """Whether a file that was made is lost. What is elsewhere is not."""
        path = os.path.relpath(os.path.normpath(Path(workdir, name)), self.catalogue.paths.root)
        if self.catalogue.is_at(path, HOME):
            return is_gone_from(workdir, name)
        return self.catalogue.is_nowhere(path)

    def _missing(self, place: str, there: Sequence[str]) -> Sequence[str]:
        """Which of the files that were there are gone; none, if the place does not answer."""
        if place == HOME:
            root = self.catalogue.paths.root
            made = (path for path in there if path in self.catalogue.maker)
            return [path for path in made if is_gone_from(root, path)]
        try:
            return cast(Sequence[str], self.mirrors[place].ask({"missing": there})["missing"])
        except QueueError:
            return []

    def look_for_files(self) -> None:
        """Take note of files that were where tasks need them, and are gone. Of a site that does not
        answer, none is."""
        done = self.run.core.is_done
        paths = self.catalogue.paths
        needed = {path for task, read in enumerate(paths.reads) if not done(task) for path in read}
        for place in (HOME, *sorted(self._used)):
            there = sorted(path for path in needed if self.catalogue.is_at(path, place))
            missing = self._missing(place, there)
            if missing:
                now = self.run.now_s()
                self.run.take_in([Record(e.FilesGone(int(now), place, tuple(missing)), at_s=now)])

    def lose(self, place: str) -> None:
        """Of a place that is lost nothing is expected any more: what only it had and is needed is
        to be made again."""
        if place in self._used:
            now = self.run.now_s()
            core = self.run.core
            run = self.run
            run.take_in([Record(e.FilesGone(int(now), place), at_s=now)])
            left = [task for task in range(len(core.job_of)) if not core.is_done(task)]
            run.undo(
                lost_files(run.dispatch.runnable, left, core.is_done, self.is_gone, results=True)
            )

    def note(self, record: Record) -> None:
        """Keep the picture of the files."""
        catalogue = self.catalogue
        event = record.event
        self._changed = True
        for place in self.mirrors:  # more may follow
            self._paces.setdefault(place, PollTimes()).hurry()
        if isinstance(event, e.TaskFinished):
            attempt = record.attempt or Attempt(event.task)
            catalogue.made(event.task, attempt.place, attempt.sizes)
            self._bring_home(event.task)
            self._in_vain.discard(event.task)
        elif isinstance(event, e.TaskKept):
            catalogue.made(event.task, HOME, (record.detail or {}).get("sizes", ()))
        elif isinstance(event, e.TaskUndone):
            for files in self.under_way.values():
                files.difference_update(catalogue.paths.makes[event.task])
            catalogue.undone(event.task)
        elif isinstance(event, e.TaskDropped) and event.lacks_files:
            self._in_vain.add(event.task)
        elif isinstance(event, e.JobsPlanned) and event.decision.jobs:
            self._used |= {self.run.core.at(event.site).site.files} - {HOME}
        elif isinstance(event, e.TasksAdded):
            catalogue.extend(self.paths_with(self.run.dispatch.runnable))
        elif isinstance(event, e.FilesMoved | e.MoveFailed | e.FilesGone):
            self._note_files(event)

    def _bring_home(self, task: int) -> None:
        """What says which tasks come after this one is read at home, also if others read it."""
        run = self.run
        rules = run.core.work.workflow.rules.get(task)
        if rules is None or not rules.expands:
            return
        (path,) = absolute(run.dispatch.runnable.steps[task].workdir, [rules.expands])
        if not self.is_home(path):
            self.catalogue.results[os.path.relpath(path, self.catalogue.paths.root)] = None

    def _note_files(self, event: e.FilesMoved | e.MoveFailed | e.FilesGone) -> None:
        catalogue = self.catalogue
        if isinstance(event, e.FilesMoved):
            catalogue.moved(event.files, event.origin, event.to, event.size_bytes, event.took_s)
            self._used |= {event.to} - {HOME}
        elif isinstance(event, e.FilesGone):
            catalogue.gone(event.place, event.files)
            self._gone.update(path for path in event.files if path in catalogue.maker)
            self._used -= set() if event.files else {event.place}
        elif event.to == HOME:
            self._ways |= {f"{catalogue.paths.root}/{path}" for path in event.files}

    def paths_with(self, runnable: Runnable) -> Paths:
        """The files of the run with tasks that join it. UserError if they could not be found
        everywhere."""
        return paths_of(runnable, os.path.isfile, self.catalogue.paths.root)

    def due_s(self) -> float:
        """When there is something to do though nothing happens, by the steady clock."""
        return min(
            (pace.last_s + pace.gap_s for pace in self._paces.values()), default=float("inf")
        )

    def look(self) -> None:
        """Ask all places for what agents wrote, each at its pace."""
        for place in self._used:
            if self._is_due(place):
                self.mirrors[place].look()

    def step(self) -> bool:
        """Take in what has moved, move what is wanted, announce what is there. Whether anything
        happened."""
        run = self.run
        ended = self.mover.ended()
        for moved in ended:
            self._ended(moved)
        self._make_again()
        if not run.core.is_stopped and (self._changed or self.troubles):
            self._changed = False
            for link, files in self.catalogue.moves(self._needs()).items():
                if link not in self.under_way and (link not in self.troubles or self._is_due(link)):
                    self.under_way[link] = set(files)
                    if link[1] == HOME:
                        self._make_way(files)
                    self.mover.start(MoveFiles(tuple(files), *link))
            self._announce()
        if (
            run.core.is_over
            and run.core.is_complete
            and not self.catalogue.results
            and not self.under_way
        ):
            self._clean_up()
        return bool(ended)

    def _to_run(self) -> Iterator[int]:
        """Tasks that are in no job, and will be."""
        core = self.run.core
        out = core.failed | core.blocked
        for task in range(len(self.catalogue.paths.reads)):
            if core.job_of[task] is None and not core.is_done(task) and task not in out:
                yield task

    def _make_again(self) -> None:
        """What no place has any more, and a task reads that is in no job, is made again.

        A task that was in a job when that came to light comes back from it without having run.
        """
        core = self.run.core
        self._gone = {path for path in self._gone if self.catalogue.is_nowhere(path)}
        gone = {path for path in self._gone if core.is_done(self.catalogue.maker[path])}
        if not gone or core.is_stopped:
            return
        lost = dict[int, LostFile]()
        for task in self._to_run():
            for path in gone.intersection(self.catalogue.paths.reads[task]):
                maker = self.catalogue.maker[path]
                lost[maker] = LostFile(maker, path, task)
        self.run.undo([lost[maker] for maker in sorted(lost)])

    def _make_way(self, files: Collection[str]) -> None:
        """What has the name of a result at home, and no run made, is kept beside it. What comes
        there from now on is the result, also if only part of a lot arrives."""
        way = {f"{self.catalogue.paths.root}/{path}" for path in files} - self._ways
        self.kept += self.run.dispatch.make_way(way)
        self._ways |= way

    def _is_due(self, what: object) -> bool:
        pace = self._paces.setdefault(what, PollTimes())
        now_s = self.run.steady_s()
        if is_due := pace.is_due(now_s):
            pace.asked(now_s)
        return is_due

    def _ended(self, moved: MovedFiles) -> None:
        run = self.run
        link = moved.move.link
        now = self.run.now_s()
        files = tuple(path for path in moved.move.files if path in self.under_way[link])
        del self.under_way[link]
        self._changed = True
        if not moved.why:
            self.troubles.pop(link, None)
            self._paces.pop(link, None)
            if moved.move.to == HOME:
                root = self.catalogue.paths.root
                arrived = {os.path.normpath(f"{root}/{path}") for path in files}
                run.dispatch.arrived(run.core.temporary, arrived)
            run.take_in(
                [
                    Record(
                        e.FilesMoved(int(now), files, *link, moved.size_bytes, moved.took_s),
                        at_s=now,
                    )
                ]
            )
        elif self.troubles.get(link) != moved.why:
            self.troubles[link] = moved.why
            run.take_in([Record(e.MoveFailed(int(now), files, *link, moved.why), at_s=now)])
        makers = {
            self.catalogue.maker[path]: path for path in moved.gone if path in self.catalogue.maker
        }
        if self._in_vain:
            run.reconsider()
        run.undo(
            [
                LostFile(task, path)
                for task, path in makers.items()
                if run.core.is_done(task) and path in files
            ]
        )

    def _open(self) -> Iterator[tuple[int, str, int]]:
        """Tasks in jobs that are to stay: the job, its place, the task."""
        for number, job in self.run.core.jobs.items():
            if not job.is_stopping:
                yield from (
                    (number, job.at.site.files, task) for task in (*job.open_tasks, *job.copies)
                )

    def _needs(self) -> dict[str, dict[str, None]]:
        needs: dict[str, dict[str, None]] = {}
        for _, place, task in self._open():
            needs.setdefault(place, {}).update(dict.fromkeys(self.catalogue.lacking(task, place)))
        for task in sorted(self._in_vain):
            place = self._place_of(task)
            needs.setdefault(place, {}).update(dict.fromkeys(self.catalogue.lacking(task, place)))
        return needs

    def _parents(self, task: int) -> list[int]:
        parents: list[int] = self.run.core.work.workflow.parents.of(task).tolist()
        return parents

    def _announce(self) -> None:
        """Tell the agents of each place what has arrived there; once, unless a later job waits for
        more of it."""
        ready: dict[str, dict[int, bool]] = {}
        for number, place, task in self._open():
            maker = self.catalogue.maker
            found = ready.setdefault(place, {})
            lacking = {maker.get(path, -number - 1) for path in self.catalogue.lacking(task, place)}
            for source in (*self._parents(task), -number - 1):
                is_there = source < 0 or (
                    self.run.core.is_done(source) and self.catalogue.made_at[source] != place
                )
                found[source] = found.get(source, True) and is_there and source not in lacking
        for place, found in ready.items():
            told = self._announced.setdefault(place, set())
            if new := [
                source for source, is_ready in found.items() if is_ready and source not in told
            ]:
                folder = self.run.dispatch.folder_at(place)
                append_lines(
                    folder.arrived, [json.dumps({"task": source}) for source in sorted(new)]
                )
                told.update(new)
                self._paces.pop(place, None)  # it is to hear of it now

    def _clean_up(self) -> None:
        for place in self._to_clean:
            if self._is_due(("remove", place)):
                try:
                    self.mirrors[place].exchange(everything=True)
                    self.mirrors[place].remove()
                except (QueueError, OutsideError) as error:
                    self.troubles[place, "be removed"] = str(error)
                    now_s = self.run.steady_s()
                    if now_s - self._left_since_s.setdefault(place, now_s) >= 2 * moving.SILENT_S:
                        self.lose(place)
                else:
                    self.troubles.pop((place, "be removed"), None)
                    now = self.run.now_s()
                    self.run.take_in([Record(e.FilesGone(int(now), place), at_s=now)])

    def close(self) -> None:
        """Stop what is under way."""
        self.keep()
        self.mover.close()
        for mirror in self.mirrors.values():
            mirror.close()
