"""What the answers of a batch system's commands mean: done, refused for good, refused for now, or nobody knows.

Rule: only words that surely say "no" are taken for a refusal. After all others the job may exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from windrow.queues.command import Answer
from windrow.queues.port import OutcomeUnknown, QueueError, SpecError


@dataclass(frozen=True, slots=True)
class Wording:
    """How one batch system puts what matters.

    `unknown`: words of a submission after which unknown whether the job exists. `transient`: words after which it
    does not, but may later. `over_already`: words on jobs that need not be cancelled any more.
    """

    system: str
    unknown: re.Pattern[str]
    transient: re.Pattern[str]
    over_already: re.Pattern[str]

    def submitted(self, answer: Answer, id_: str | None, what: str) -> str:
        """The id of a job that was taken. SpecError or QueueError where it was surely refused, else OutcomeUnknown.

        `id_` is the id in the answer, None where there is none.
        """
        if answer.is_good and id_ is not None:
            return id_
        if answer.code is not None and answer.code > 0 and not self.unknown.search(answer.words):
            refusal = f"{self.system} did not accept job {what}: {answer.words}"
            raise (QueueError if self.transient.search(answer.words) else SpecError)(refusal)
        raise OutcomeUnknown(f"unknown whether {self.system} accepted job {what}: {answer.words or answer.out!r}")

    def check_cancelled(self, answer: Answer, program: str) -> None:
        """QueueError unless every job is gone or on its way."""
        complaints = _lines(answer)
        real = [line for line in complaints if not self.over_already.search(line)]
        if answer.code is None or real or (not answer.is_good and not complaints):
            raise QueueError(f"{program} failed: {'; '.join(real) or answer.words}")

    def is_all_over(self, answer: Answer) -> bool:
        """Whether a command failed only because of jobs that are over."""
        complaints = _lines(answer)
        return bool(complaints) and all(self.over_already.search(line) for line in complaints)


def answered(answer: Answer, program: str) -> str:
    """What the program printed. QueueError where it failed."""
    if not answer.is_good:
        raise QueueError(f"{program} failed: {answer.words}")
    return answer.out


def _lines(answer: Answer) -> list[str]:
    return [line for line in answer.err.splitlines() if line.strip()]
