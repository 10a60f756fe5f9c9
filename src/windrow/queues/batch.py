"""What batch systems that are spoken to by commands have in common: how jobs are submitted, and
what answers mean.

Rule: only words that surely say "no" are taken for a refusal. After all others the job may exist.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windrow.queues.command import Answer, Run, user_name
from windrow.queues.port import JobSpec, Limits, OutcomeUnknown, QueueError, SpecError
from windrow.queues.script import array_name, here_document
from windrow.queues.spec import check_count


@dataclass(frozen=True, slots=True)
class Wording:
    """How one batch system puts what matters.

    `unknown`: words of a submission after which unknown whether the job exists. `transient`: words
    after which it does not, but may later. `over_already`: words on jobs that need not be cancelled
    any more.
    """

    system: str
    unknown: re.Pattern[str]
    transient: re.Pattern[str]
    over_already: re.Pattern[str]

    def submitted(self, answer: Answer, id_: str | None, what: str) -> str:
        """The id of a job that was taken. SpecError or QueueError if it was surely refused, else
        OutcomeUnknown.

        `id_` is the id in the answer, None if there is none.
        """
        if answer.is_good and id_ is not None:
            return id_
        if answer.code is not None and answer.code > 0 and not self.unknown.search(answer.words):
            refusal = f"{self.system} did not accept job {what}: {answer.words}"
            raise (QueueError if self.transient.search(answer.words) else SpecError)(refusal)
        raise OutcomeUnknown(
            f"unknown whether {self.system} accepted job {what}: {answer.words or answer.out!r}"
        )

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


class BatchQueue:
    """A queue behind commands. `env` is their environment where they submit, `asking_env` where
    they ask."""

    name: str
    policy = "conservative"
    """Backfilling that plans every job of the queue."""
    wording: Wording

    def __init__(
        self, env: Mapping[str, str], asking_env: Mapping[str, str], timeout_s: float, run: Run
    ) -> None:
        self._env = dict(env)
        self._asking_env = asking_env
        self._timeout_s = timeout_s
        self._run = run

    @property
    def _user(self) -> str:
        """Who asks, as the batch system sees it; on another machine that may be someone else
        (`ssh`)."""
        return getattr(self._run, "user", "") or user_name()

    def limits(self) -> Limits:
        """What may be asked for."""
        raise NotImplementedError

    def submit(self, spec: JobSpec) -> str:
        """Submit a job. Returns its id: the queue has accepted it. Raises SpecError, QueueError or
        OutcomeUnknown."""
        return self._submit([spec], spec.tag)

    def submit_array(self, specs: Sequence[JobSpec]) -> list[str]:
        """Submit jobs that differ in nothing but tag, command and output as one job array; all or
        nothing."""
        if len(specs) <= 1:
            return [self.submit(spec) for spec in specs]
        check_count(len(specs), self.limits())
        whole = self._submit(specs, array_name(specs))
        return [self._member(whole, index) for index in range(len(specs))]

    def commands(self, specs: Sequence[JobSpec]) -> list[str]:
        """The exact commands by which these jobs would be submitted one by one; nothing is
        submitted."""
        submissions = (self._submission([spec]) for spec in specs)
        return [here_document(shlex.join(argv), script) for argv, script in submissions]

    def _submission(self, specs: Sequence[JobSpec]) -> tuple[list[str], str]:
        """The command that submits one job, or several as an array, and the script that it
        reads."""
        raise NotImplementedError

    def _accepted(self, out: str) -> str | None:
        """The id in what such a command prints; None if there is none."""
        raise NotImplementedError

    def _member(self, whole: str, index: int) -> str:
        """The id of a member of the array that has the id `whole`."""
        raise NotImplementedError

    def _submit(self, specs: Sequence[JobSpec], what: str) -> str:
        argv, script = self._submission(specs)
        answer = self._run(argv, stdin=script, env=self._env, timeout_s=self._timeout_s)
        return self.wording.submitted(answer, self._accepted(answer.out), what)

    def _ask(self, argv: Sequence[str]) -> str:
        return answered(self._command(argv), argv[0])

    def _command(self, argv: Sequence[str], stdin: str = "") -> Answer:
        return self._run(argv, stdin=stdin, env=self._asking_env, timeout_s=self._timeout_s)


def answered(answer: Answer, program: str) -> str:
    """What the program printed. QueueError if it failed."""
    if not answer.is_good:
        raise QueueError(f"{program} failed: {answer.words}")
    return answer.out


def _lines(answer: Answer) -> list[str]:
    return [line for line in answer.err.splitlines() if line.strip()]
