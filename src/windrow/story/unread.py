"""What agents of a run wrote that no manager has read yet: for those who tell of a run that has
none.

It is not in the journal; the next manager takes it in. Rule 1: it is told as that manager will
(`translate`), except that only the agents are heard, and not the queue: a job whose agent is silent
counts as running. Left out: jobs whose files are elsewhere, which only a manager brings here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from windrow.agent.event_file import AgentLeft, Tail
from windrow.agent.folder import RunFolder
from windrow.errors import WindrowError
from windrow.model.attempt import DONE
from windrow.story import events as e
from windrow.story import translate
from windrow.story.journal import Record
from windrow.story.states import JobStage
from windrow.story.story import RunStory


class Unread:
    """The event files of one run, from where its managers have read them."""

    def __init__(self, folder: RunFolder, offsets: Mapping[int, int]) -> None:
        self._folder = folder
        self._offsets = offsets
        self._tails: dict[int, Tail] = {}

    def records(self, story: RunStory) -> Iterator[Record]:
        """What is new since the last call; the story is to take in each record before the next is
        asked for."""
        for number, job in list(story.jobs.items()):
            if job.outcome not in (None, JobStage.KILLED):
                continue
            if number not in self._tails:
                self._tails[number] = Tail(
                    self._folder.events(number), self._offsets.get(number, 0)
                )
            try:
                yield from self._of(number, story)
            except (
                WindrowError
            ):  # who may not read these files, or cannot now, is told what the journal has
                return

    def _of(self, number: int, story: RunStory) -> Iterator[Record]:
        job = story.jobs[number]
        while words := self._tails[number].read():
            for word in words:
                if job.outcome is not None:  # it was given up
                    record = translate.from_given_up(number, word)
                elif isinstance(word, AgentLeft):
                    record = _left(number, word, was_asked=job.is_asked_to_stop)
                else:
                    record = translate.from_agent(number, word)
                is_known = (
                    record is not None
                    and isinstance(record.event, e.JobStarted)
                    and job.started_s is not None
                )
                if record is not None and not is_known:
                    yield record


def _left(number: int, word: AgentLeft, *, was_asked: bool) -> Record:
    """The end of a job as far as its agent tells it."""
    if word.why == DONE:
        return Record(e.JobEnded(int(word.at), number), {"agent": DONE}, word.at)
    return translate.ending(number, None, word.at, was_asked=was_asked, last_word=word.why)
