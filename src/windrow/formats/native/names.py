"""Names by pattern: which of many names does `align-*` mean?

Law: `*` stands for any characters; for paths, for any but `/`. Answers come in the order in which names were given.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable


class Names:
    """Many names, numbered as given; finding those that match costs little where the pattern begins with text."""

    def __init__(self, names: Iterable[str], *, are_paths: bool = False) -> None:
        self._sorted = sorted((name, number) for number, name in enumerate(names))
        self._any = "[^/]*" if are_paths else ".*"
        self._found: dict[str, tuple[int, ...]] = {}

    def matching(self, pattern: str) -> tuple[int, ...]:
        """The numbers of the names that the pattern means, ascending."""
        if pattern not in self._found:
            self._found[pattern] = self._search(pattern)
        return self._found[pattern]

    def _search(self, pattern: str) -> tuple[int, ...]:
        pieces = pattern.split("*")
        whole = re.compile(self._any.join(map(re.escape, pieces)), re.DOTALL)
        found: list[int] = []
        for place in range(bisect_left(self._sorted, (pieces[0], 0)), len(self._sorted)):
            name, number = self._sorted[place]
            if not name.startswith(pieces[0]):
                break
            if whole.fullmatch(name):
                found.append(number)
        return tuple(sorted(found))
