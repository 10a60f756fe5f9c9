"""A JSON file whose faults can be pointed at: every error names the file, the line and the place in
the document."""

import re
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import msgspec
import numpy as np

from windrow.errors import InputError
from windrow.formats.disk import AnyPath, not_utf8, read_bytes

T = TypeVar("T")

_BYTE_PLACE = re.compile(r" \(byte (\d+)\)")


class JsonSource:
    """The bytes of a JSON file, and where they came from."""

    def __init__(self, path: AnyPath) -> None:
        self.path = path
        self.data = read_bytes(path).removeprefix(b"\xef\xbb\xbf")

    def decode(self, kind: type[T]) -> T:
        """The whole document as `kind`. InputError if it is not JSON or not of that kind."""
        try:
            return msgspec.json.decode(self.data, type=kind)
        except msgspec.ValidationError as error:
            raise InputError(
                self.path, str(error), fix="compare it with the WfFormat schema"
            ) from None
        except msgspec.DecodeError as error:
            place = _BYTE_PLACE.search(str(error))
            line = self.data.count(b"\n", 0, int(place[1]) if place else None) + 1
            problem = _BYTE_PLACE.sub("", str(error))
            fix = "fix the JSON there"
            if place is None:  # msgspec gives no place for one thing only: the text ended too early
                problem = "the JSON ends too early"
                fix = "copy or download it again"
            raise InputError(self.path, problem, line=line, fix=fix) from None
        except UnicodeDecodeError:
            raise not_utf8(self.path, self.data) from None
        except RecursionError:
            raise InputError(self.path, "nested too deeply to be a workflow") from None


class Section(Generic[T]):
    """One list of the document, its items decoded one at a time. `where` is its path, for
    messages."""

    def __init__(
        self, source: JsonSource, where: str, items: Sequence[msgspec.Raw], kind: type[T]
    ) -> None:
        self._source = source
        self._where = where
        self._items = items
        self._decoder = msgspec.json.Decoder(kind)

    def __iter__(self) -> Iterator[T]:
        decode = self._decoder.decode
        place = 0
        try:
            for place in range(len(self._items)):
                yield decode(self._items[place])
        except msgspec.ValidationError as error:
            raise self.fault(place, str(error), "compare it with the WfFormat schema") from None
        except UnicodeDecodeError:
            raise not_utf8(self._source.path, self._source.data) from None

    def fault(self, place: int, problem: str, fix: str = "") -> InputError:
        """The error for item number `place`, with its line."""
        # An item is a view into the document's bytes, so the distance of the two addresses is its
        # place.
        item = np.frombuffer(memoryview(self._items[place]), dtype=np.uint8)
        offset = int(
            item.ctypes.data - np.frombuffer(self._source.data, dtype=np.uint8).ctypes.data
        )
        line = self._source.data.count(b"\n", 0, offset) + 1
        return InputError(
            self._source.path, f"{self._where}[{place}]: {problem}", line=line, fix=fix
        )
