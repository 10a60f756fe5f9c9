"""Listings that all runs of a user on this machine share: ten runs ask little more than one.

Rule 1: an answer is used for `FRESH_S` after it was asked for, and only if it was asked for after
this process last changed something, or wanted to know for sure (`forget`).
Rule 2: only listings are kept (squeue, sinfo), and only good answers, each in a file of its own in
the folder of the user that the login node has in memory. Where there is none, nothing is shared.
Rule 3: what cannot be read or written is asked for.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from windrow.files import replacing
from windrow.queues import command
from windrow.queues.command import Answer, Run

FRESH_S = 10.0
"""How long an answer is good for another run."""
_LISTINGS = ("squeue", "sinfo")
_ASKING = (*_LISTINGS, "sacct", "sacctmgr")
_WHERE = ("SLURM_CONF", "SLURM_CLUSTERS")


class _Kept(msgspec.Struct):
    argv: list[str]
    asked_s: float
    out: str
    err: str


def runtime_folder(environ: Mapping[str, str] = os.environ) -> Path | None:
    """This user's folder in the memory of this machine; None if there is none."""
    named = Path(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}")
    try:
        is_mine = named.is_absolute() and named.stat().st_uid == os.getuid()
    except OSError:
        return None
    if is_mine and named.is_dir():
        return named
    return None


class Shared:
    """Runs commands, listings among them for all runs whose answers are in this folder."""

    def __init__(
        self, folder: Path, run: Run = command.run, clock: Callable[[], float] = time.time
    ) -> None:
        self._folder = folder
        self._run = run
        self._clock = clock
        self._changed_s = float("-inf")

    def forget(self) -> None:
        """Answers of before now are too old."""
        self._changed_s = self._clock()

    def __call__(
        self, argv: Sequence[str], *, stdin: str, env: Mapping[str, str], timeout_s: float
    ) -> Answer:
        """Run one command, or take what another run was answered."""
        if argv[0] not in _LISTINGS:
            answer = self._run(argv, stdin=stdin, env=env, timeout_s=timeout_s)
            if argv[0] not in _ASKING and not {"show", "--test-only"}.intersection(argv):
                self.forget()
            return answer
        file = self._folder / _name(argv, env)
        if (kept := self._kept(file, argv)) is not None:
            return Answer(0, kept.out, kept.err)
        asked_s = self._clock()
        answer = self._run(argv, stdin=stdin, env=env, timeout_s=timeout_s)
        if answer.is_good:
            self._keep(file, _Kept(list(argv), asked_s, answer.out, answer.err))
        return answer

    def _kept(self, file: Path, argv: Sequence[str]) -> _Kept | None:
        """What is in the file, if that is an answer to this, and new enough."""
        try:
            kept = msgspec.json.decode(file.read_bytes(), type=_Kept)
        except (OSError, msgspec.MsgspecError, ValueError):
            return None
        is_new = 0 <= self._clock() - kept.asked_s < FRESH_S and kept.asked_s > self._changed_s
        if is_new and kept.argv == list(argv):
            return kept
        return None

    def _keep(self, file: Path, kept: _Kept) -> None:
        try:
            with replacing(file, lasting=False) as stream:
                stream.write(msgspec.json.encode(kept))
        except OSError:
            return


def _name(argv: Sequence[str], env: Mapping[str, str]) -> str:
    where = [env.get(name, "") for name in _WHERE]
    return f"windrow-{hashlib.sha256(msgspec.json.encode([argv, where])).hexdigest()[:24]}"
