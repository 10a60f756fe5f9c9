"""Why a job waits, in plain words, from the batch system's own word. What is known is in
`reasons.toml`.

Rule 1: the system's word is never lost: it stands in parentheses, or alone if it is not known
here.
Rule 2: a reason has a fix if time alone does not cure it. What is not known is taken to pass by
itself.
"""

import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason. `fix` is empty if the job only has to wait. `is_foreseen`: forecasts of its
    start may be right. `is_dated`: it ends at a time that was announced, and not before."""

    word: str
    words: str = ""
    fix: str = ""
    is_foreseen: bool = True
    is_dated: bool = False

    @property
    def is_lasting(self) -> bool:
        """Whether waiting alone does not help."""
        return bool(self.fix)

    def __str__(self) -> str:
        if self.words:
            return f"{self.words} ({self.word})"
        return self.word


@cache
def _known() -> list[Reason]:
    """What is known: `word` is a pattern here."""
    table = tomllib.loads(Path(__file__).with_name("reasons.toml").read_text(encoding="utf-8"))
    fixes = table["fixes"]
    known = list[Reason]()
    for word, words, *fix in table["known"]:
        what_to_do = "".join(fixes.get(name, name) for name in fix)
        is_foreseen = word in table["foreseen"]
        known.append(Reason(word, words, what_to_do, is_foreseen, word in table["dated"]))
    return known


def reason(word: str) -> Reason:
    """What the batch system's word means."""
    return next(
        (replace(known, word=word) for known in _known() if re.match(known.word, word)),
        Reason(word),
    )
