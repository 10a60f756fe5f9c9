"""Why a job waits, in plain words, from the batch system's own word. What is known is in `reasons.toml`.

Rule 1: the system's word is never lost: it stands in parentheses, or alone where it is not known here.
Rule 2: a reason has a fix where time alone does not cure it. What is not known is taken to pass by itself.
"""

import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason. `fix` is empty where the job only has to wait."""

    word: str
    words: str = ""
    fix: str = ""

    @property
    def is_lasting(self) -> bool:
        """Whether waiting alone does not help."""
        return bool(self.fix)

    def __str__(self) -> str:
        return f"{self.words} ({self.word})" if self.words else self.word


@cache
def _known() -> list[Reason]:
    """What is known: `word` is a pattern here."""
    table = tomllib.loads(Path(__file__).with_name("reasons.toml").read_text(encoding="utf-8"))
    return [
        Reason(word, words, *(table["fixes"].get(fix, fix) for fix in fixes)) for word, words, *fixes in table["known"]
    ]


def reason(word: str) -> Reason:
    """What the batch system's word means."""
    return next((replace(known, word=word) for known in _known() if re.match(known.word, word)), Reason(word))
