"""XML as a stream of elements that know their lines: the root's start first, then each child of the
root, complete.

Expat is fed block by block and an element is forgotten once it was handed out, so memory is that of
the largest child of the root. ElementTree's iterparse does as much, but does not say on which line
an element stands. Entities are refused where they are declared: a few lines of them can stand for
gigabytes, and no workflow needs any.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from windrow.errors import InputError
from windrow.formats.disk import AnyPath, open_bytes

_BLOCK_BYTES = 1 << 18
_DEPTH_MAX = 100
_NO_WORKFLOW = "this is not a workflow"


@dataclass(slots=True)
class Element:
    """One element: `content` holds its texts and elements in order; tags have lost their
    namespace."""

    tag: str
    attributes: dict[str, str]
    line: int
    content: list[str | Element] = field(default_factory=list)

    def children(self, tag: str) -> Iterator[Element]:
        """Its elements with this tag."""
        return (item for item in self.content if isinstance(item, Element) and item.tag == tag)

    @property
    def text(self) -> str:
        """Its own text, that of its elements left out."""
        return "".join(item for item in self.content if isinstance(item, str)).strip()


def stream_elements(path: AnyPath) -> Iterator[Element]:
    """The root without its content, then its children. InputError with the line where the XML is
    not well-formed."""
    builder = _ElementBuilder(path)
    with open_bytes(path) as stream:
        try:
            while block := stream.read(_BLOCK_BYTES):
                builder.parser.Parse(block, False)
                yield from builder.take()
            builder.parser.Parse(b"", True)
        except expat.ExpatError as error:
            problem = f"not well-formed XML ({expat.ErrorString(error.code)})"
            fix = "fix it there, or copy or download it again if it was cut off"
            raise InputError(path, problem, line=error.lineno, fix=fix) from None
        except (
            LookupError,
            ValueError,
        ) as error:  # the encoding it declares: unknown, or not one expat can use
            raise InputError(
                path, f"cannot be decoded ({error})", line=1, fix="convert it to UTF-8"
            ) from None
    yield from builder.take()


class _ElementBuilder:
    """Makes elements from the parser's calls; the finished ones wait in `_ready`."""

    def __init__(self, path: AnyPath) -> None:
        self._path = path
        self._open: list[Element] = []
        self._ready: list[Element] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._entity

    def take(self) -> list[Element]:
        ready = self._ready
        self._ready = []
        return ready

    def _begin(self, tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag.rpartition(":")[2], attributes, self.parser.CurrentLineNumber)
        if len(self._open) >= _DEPTH_MAX:
            raise InputError(
                self._path,
                f"nested more than {_DEPTH_MAX} deep",
                line=element.line,
                fix=_NO_WORKFLOW,
            )
        if not self._open:
            self._ready.append(element)
        elif len(self._open) > 1:
            self._open[-1].content.append(element)
        self._open.append(element)

    def _end(self, _tag: str) -> None:
        element = self._open.pop()
        if len(self._open) == 1:
            self._ready.append(element)

    def _entity(self, name: str, *_: object) -> None:
        line = self.parser.CurrentLineNumber
        raise InputError(
            self._path,
            f"declares the entity {name!r}",
            line=line,
            fix="write out what it stands for",
        )

    def _characters(self, text: str) -> None:
        if len(self._open) > 1:
            self._open[-1].content.append(text)
