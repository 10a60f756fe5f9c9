"""A program that uses files at random, in threads and forks, and prints what it did to each,
counted byte by byte."""

import json
import mmap
import os
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any


class File:
    """What is known of one file: its size now and at most, bytes moved, operations."""

    def __init__(self) -> None:
        self.size = self.most = 0
        self.traffic, self.touched = [0, 0], set[int]()
        self.kinds: Counter[str] = Counter()
        self.maps: list[tuple[int, int]] = []

    def moved(self, way: int, at: int, size: int) -> None:
        self.kinds["write" if way else "read"] += 1
        self.traffic[way] += size
        self.touched |= set(range(at, at + size))
        self.resized(max(self.size, at + size) if way and size else self.size)

    def resized(self, size: int) -> None:
        self.size, self.most = size, max(self.most, size)

    def told(self) -> list[Any]:
        for way, size in self.maps:
            self.moved(way, 0, min(size, self.most))
        return [*self.traffic, len(self.touched), self.most, dict(self.kinds)]


_STEPS = ["read", "write", "pread", "pwrite", "seek", "dup", "close", "stat", "truncate"]
_STEPS += ["map", "copy", "send", "rename", "unlink"]


class Open:
    """An open file: where it stands, shared by duplicates and forks."""

    def __init__(self, file: File, appends: bool) -> None:
        self.file, self.place, self.appends = file, 0, appends

    def take(self, way: int, size: int) -> None:
        self.place = (
            self.file.size if way and self.appends and size else self.place
        )  # as Linux has it
        size = size if way else max(0, min(size, self.file.size - self.place))
        self.file.moved(way, self.place, size)
        self.place += size


class Program:
    """Draws and does one thing after another."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.paths: dict[str, File] = {}
        self.all: list[File] = []
        self.open: dict[int, Open] = {}

    def somewhere(self, call: Callable[[], object]) -> None:
        """Here, in a thread, or in a child that is waited for."""
        where = self.draw.randrange(3)
        if where == 1:
            thread = threading.Thread(target=call)
            thread.start()
            thread.join()
        elif where == 2:
            if (child := os.fork()) == 0:
                call()
                os._exit(0)
            os.waitpid(child, 0)
        else:
            call()

    def step(self) -> None:
        draw = self.draw
        if not self.open or draw.random() < 0.15:
            return self.opened(draw.choice("abcd"))
        fd = draw.choice(sorted(self.open))
        one, size, at = self.open[fd], draw.randrange(200), draw.randrange(300)
        file, other = one.file, draw.choice(sorted(self.open))
        what = draw.choice(_STEPS)
        if what == "read":
            self.somewhere(
                lambda: os.readv(fd, [bytearray(size // 2), bytearray(size - size // 2)])
            )
            one.take(0, size)
        elif what == "write":
            self.somewhere(lambda: os.write(fd, b"x" * size))
            one.take(1, size)
        elif what == "pread":
            self.somewhere(lambda: os.pread(fd, size, at))
            file.moved(0, at, max(0, min(size, file.size - at)))
        elif what == "pwrite" and not one.appends:
            self.somewhere(lambda: os.pwrite(fd, b"y" * size, at))
            file.moved(1, at, size)
        elif what == "seek":
            self.somewhere(lambda: os.lseek(fd, at, os.SEEK_SET))
            file.kinds["seek"] += at != one.place
            one.place = at
        elif what == "dup":
            self.open[os.dup(fd)] = one
            file.kinds["dup"] += 1
        elif what == "close":
            os.close(fd)
            del self.open[fd]
            file.kinds["close"] += 1
        elif what == "stat":
            self.somewhere(lambda: os.fstat(fd))
            file.kinds["stat"] += 1
        elif what == "truncate":
            self.somewhere(lambda: os.ftruncate(fd, at))
            file.kinds["other"] += 1
            file.resized(at)
        elif what == "map" and file.size:
            with mmap.mmap(
                fd, file.size
            ):  # looks at it, duplicates its descriptor, and may be written
                file.maps += [(0, file.size), (1, file.size)]
            file.kinds += Counter(stat=1, dup=1, close=1)
        elif (
            what in ("copy", "send")
            and self.open[other].file is not file
            and not self.open[other].appends
        ):
            self.copied(what, fd, other, size)
        elif what in ("rename", "unlink"):
            self.named(what)
        return None

    def opened(self, name: str) -> None:
        draw, flags = self.draw, os.O_RDWR | os.O_CREAT
        flags |= draw.choice([0, os.O_TRUNC]) | draw.choice([0, 0, os.O_APPEND])
        if name not in self.paths:
            self.paths[name] = File()
            self.all.append(self.paths[name])
        file = self.paths[name]
        self.open[os.open(name, flags)] = Open(file, bool(flags & os.O_APPEND))
        file.kinds["open"] += 1
        if flags & os.O_TRUNC:
            file.size = 0

    def copied(self, what: str, source: int, target: int, size: int) -> None:
        one, two = self.open[source], self.open[target]
        there = max(0, min(size, one.file.size - one.place))
        if not there:
            return
        if what == "send":
            assert os.sendfile(target, source, None, there) == there
        else:
            assert os.copy_file_range(source, target, there) == there
        one.take(0, there)
        two.take(1, there)

    def named(self, what: str) -> None:
        name = self.draw.choice(sorted(self.paths) or ["a"])
        new = self.draw.choice("abcd")
        if name in self.paths and what == "unlink":
            os.unlink(name)  # noqa: PTH108
            self.paths.pop(name).kinds["other"] += 1
        elif name in self.paths and new != name:
            os.rename(name, new)  # noqa: PTH104
            self.paths[new] = self.paths.pop(name)
            self.paths[new].kinds["other"] += 1


if __name__ == "__main__":
    os.chdir(sys.argv[2])
    program = Program(random.Random(int(sys.argv[1])))
    for _ in range(60):
        program.step()
    os.write(2, json.dumps([file.told() for file in program.all]).encode())
