"""What strace writes, read as records: descriptors, processes, interrupted calls."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import InputError
from windrow.formats.strace import Reading
from windrow.model.trace import APART, KINDS, MAP_READ, MAP_WRITE, READ, WRITE, Stage, Trace


def read(*lines: str, folder: str = "/w") -> Trace:
    """The trace of these calls: `PID CALL`, one after another; halves of calls as they are."""
    reading = Reading()
    pids_and_calls = (line.split(" ", 1) for line in lines)
    reading.stage(
        [f"{pid} 1700000000.{at:06d} {call}\n" for at, (pid, call) in enumerate(pids_and_calls)],
        folder,
    )
    return Trace.of(reading.records, [Stage("one")], reading.files)


def moved(trace: Trace) -> list[tuple[str, str, int, int]]:
    """Reads, writes and mappings: kind, path, offset and bytes."""
    names = {READ: "read", WRITE: "write", MAP_READ: "map", MAP_WRITE: "map for writing"}
    rows = zip(
        trace.op.tolist(),
        trace.file.tolist(),
        trace.offset.tolist(),
        trace.bytes.tolist(),
        strict=True,
    )
    return [
        (names[op], trace.files.paths[file], at, size)
        for op, file, at, size in rows
        if op in names and file >= 0
    ]


def kinds(trace: Trace) -> list[str]:
    return [KINDS[op] for op in trace.op.tolist() if op < len(KINDS)]


def test_places_follow_descriptors_through_duplicates_forks_and_seeks() -> None:
    trace = read(
        '1 openat(AT_FDCWD</w>, "a", O_RDWR|O_CREAT, 0644) = 3</w/a>',
        '1 write(3</w/a>, ""..., 100) = 100',
        "1 dup(3</w/a>) = 4</w/a>",
        "1 lseek(4</w/a>, 10, SEEK_SET) = 10",
        "1 lseek(3</w/a>, 0, SEEK_CUR) = 10",  # moves nothing
        "1 clone(child_stack=NULL, flags=SIGCHLD) = 2",
        '2 read(3</w/a>, ""..., 5) = 5',
        '1 read(3</w/a>, ""..., 5) = 5',
        "2 close(3</w/a>) = 0",
        '2 openat(AT_FDCWD</w>, "b", O_RDONLY) = 3</w/b>',
        '2 read(3</w/b>, ""..., 9) = 7',
        '1 pread64(3</w/a>, ""..., 4, 90) = 4',
        '1 read(3</w/a>, ""..., 5) = 5',
        "1 read(9</w/a>, 0x1, 5) = -1 EBADF (Bad file descriptor)",
    )
    assert moved(trace) == [
        ("write", "/w/a", 0, 100),
        ("read", "/w/a", 10, 5),
        ("read", "/w/a", 15, 5),
        ("read", "/w/b", 0, 7),
        ("read", "/w/a", 90, 4),
        ("read", "/w/a", 20, 5),
        ("read", "/w/a", 0, 0),
    ]
    assert kinds(trace).count("seek") == 1


def test_halves_of_calls_and_children_that_run_first() -> None:
    trace = read(
        '1 openat(AT_FDCWD</w>, "a", O_RDONLY <unfinished ...>',
        "9 +++ exited with 0 +++",
        "1 <... openat resumed>) = 3</w/a>",
        "1 clone3({flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD}, 88 <unfinished ...>",
        "2 read(3</w/a>,  <unfinished ...>",
        '2 <... read resumed>""..., 50) = 50',
        "1 <... clone3 resumed>) = 2",
        "1 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD} => {parent_tid=[5]}, 88) = 5",
        '5 openat(AT_FDCWD</w>, "b", O_WRONLY|O_CREAT|O_APPEND, 0644) = 4</w/b>',
        '1 write(4</w/b>, ""..., 8) = 8',
        '5 write(4</w/b>, ""..., 2) = 2',
        '1 read(3</w/a>, ""..., 50) = 10',
        "1 exit_group(0)   = ?",
    )
    assert moved(trace) == [
        ("read", "/w/a", 0, 50),
        ("write", "/w/b", 0, 8),
        ("write", "/w/b", 8, 2),
        ("read", "/w/a", 50, 10),
    ]


def test_copies_between_files_are_a_read_and_a_write() -> None:
    trace = read(
        '1 openat(AT_FDCWD</w>, "a", O_RDONLY) = 3</w/a>',
        '1 openat(AT_FDCWD</w>, "b", O_WRONLY|O_CREAT, 0644) = 4</w/b>',
        "1 sendfile(4</w/b>, 3</w/a>, [0] => [100], 100) = 100",
        "1 sendfile(4</w/b>, 3</w/a>, NULL, 100) = 60",
        "1 copy_file_range(3</w/a>, [5], 4</w/b>, NULL, 30, 0) = 30",
        "1 splice(3</w/a>, NULL, 6<pipe:[12]>, NULL, 30, 0) = 20",
        "1 splice(5<pipe:[12]>, NULL, 4</w/b>, [7], 30, 0) = 20",
    )
    assert moved(trace) == [
        ("read", "/w/a", 0, 100),
        ("write", "/w/b", 0, 100),
        ("read", "/w/a", 0, 60),
        ("write", "/w/b", 100, 60),
        ("read", "/w/a", 5, 30),
        ("write", "/w/b", 160, 30),
        ("read", "/w/a", 60, 20),
        ("write", "/w/b", 7, 20),
    ]
    assert trace.file.tolist().count(APART) == 2


def test_mappings_are_whole_ranges_up_to_the_end_of_the_file() -> None:
    trace = read(
        '1 execve("/bin/x", [...], 0x7f /* 3 vars */) = 0',
        '1 openat(AT_FDCWD</w>, "a", O_RDWR) = 3</w/a>',
        '1 newfstatat(3</w/a>, "", {st_mode=S_IFREG|0644, st_size=5000, ...}, AT_EMPTY_PATH) = 0',
        "1 mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_SHARED, 3</w/a>, 0x1000) = 0x7f00",
        "1 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_PRIVATE, 3</w/a>, 0) = 0x7f00",
        "1 mmap(NULL, 4096, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f00",
    )
    assert moved(trace) == [
        ("map", "/bin/x", 0, 0),  # its size is not known
        ("map", "/w/a", 4096, 904),
        ("map for writing", "/w/a", 4096, 904),
        ("map", "/w/a", 0, 4096),
    ]


def test_a_file_keeps_its_number_when_it_is_renamed_and_a_new_one_gets_its_own() -> None:
    trace = read(
        '1 chdir("sub") = 0',
        '1 openat(AT_FDCWD</w/sub>, "a", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3</w/sub/a>',
        '1 write(3</w/sub/a>, ""..., 10) = 10',
        '1 rename("a", "../b") = 0',
        '1 write(3</w/b>, ""..., 10) = 10',
        "1 ftruncate(3</w/b>, 500) = 0",
        '1 unlink("../b") = 0',
        '1 write(3</w/b>(deleted), ""..., 1) = 1',
        '1 openat(AT_FDCWD</w/sub>, "/w/b", O_WRONLY|O_CREAT, 0644) = 4</w/b>',
        '1 write(4</w/b>, ""..., 3) = 3',
        '1 renameat2(AT_FDCWD</w/sub>, "/w", AT_FDCWD</w/sub>, "/v", RENAME_NOREPLACE) = 0',
        '1 write(1<pipe:[77]>, ""..., 3) = 3',
        '1 openat(AT_FDCWD</w>, "a\\303\\244<b>", O_RDONLY) = 5</w/a\\303\\244\\74b\\76>',
        '1 read(5</w/a\\303\\244\\74b\\76>, "", 3) = 0',
    )
    assert [trace.files.paths[n] for n in trace.file.tolist() if n >= 0][-1] == "/w/aä<b>"
    assert trace.files.paths == ["/w/b", "/v/b", "/w/aä<b>"]
    assert (trace.files.made, trace.files.gone) == ([True, True, False], [True, False, False])
    assert trace.files.sizes == {(0, 0): 500, (0, 1): 3}


@pytest.mark.parametrize("line", ["hello\n", "read(3, 4) = 5\n", '1 read(3</a>, ""..., 4) = 5\n'])
def test_what_is_not_strace_is_refused_with_its_line(line: str) -> None:
    with pytest.raises(InputError, match=r"log:2: this is not a line of strace -f -y -ttt"):
        Reading().stage(["1 1700000000.1 close(3) = 0\n", line], "/", "log")


@given(st.integers(0, 2**32), st.integers(1, 60))
def test_random_programs_are_read_as_a_small_kernel_ran_them(seed: int, calls: int) -> None:
    draw = random.Random(seed)
    lines, expected = _program(draw, calls)
    assert moved(read(*lines)) == expected


def _program(draw: random.Random, calls: int) -> tuple[list[str], list[tuple[str, str, int, int]]]:
    """Calls of several processes, some in two halves, and what they moved, by a kernel of a few
    lines."""
    opened: dict[int, dict[int, list[Any]]] = {
        1: {}
    }  # process: descriptor: [path, place], which others may share
    lines: list[str] = []
    expected: list[tuple[str, str, int, int]] = []

    def call(pid: int, text: str, answer: object) -> None:
        if draw.random() < 0.3 and not text.startswith("clone"):
            cut = text.rindex(" ") if " " in text else len(text)
            lines.append(f"{pid} {text[:cut]} <unfinished ...>")
            lines.append(f"{pid} <... {text.partition('(')[0]} resumed>{text[cut:]}) = {answer}")
        else:
            lines.append(f"{pid} {text}) = {answer}")

    for _ in range(calls):
        pid = draw.choice(sorted(opened))
        table = opened[pid]
        free = next(n for n in range(3, 1000) if n not in table)
        what = draw.choice(
            ["open", "fork", "thread", "dup", "seek", "read", "write", "pread", "close"]
        )
        if what == "open" or not table:
            path = f"/w/{draw.choice('abc')}"
            table[free] = [path, 0]
            call(pid, f'openat(AT_FDCWD</w>, "{path[3:]}", O_RDWR', f"{free}<{path}>")
            continue
        fd = draw.choice(sorted(table))
        one, size = table[fd], draw.randint(0, 50)
        if what in ("fork", "thread"):
            child = max(opened) + 1
            opened[child] = table if what == "thread" else dict(table)
            call(pid, f"clone(flags={'CLONE_FILES|' * (what == 'thread')}SIGCHLD", child)
        elif what == "dup":
            table[free] = one
            call(pid, f"dup({fd}<{one[0]}>", f"{free}<{one[0]}>")
        elif what == "seek":
            one[1] = draw.randint(0, 99)
            call(pid, f"lseek({fd}<{one[0]}>, {one[1]}, SEEK_SET", one[1])
        elif what == "pread":
            place = draw.randint(0, 99)
            expected.append(("read", one[0], place, size))
            call(pid, f'pread64({fd}<{one[0]}>, ""..., {size}, {place}', size)
        elif what == "close":
            del table[fd]
            call(pid, f"close({fd}<{one[0]}>", 0)
        else:
            expected.append((what, one[0], one[1], size))
            one[1] += size
            call(pid, f'{what}({fd}<{one[0]}>, ""..., {size}', size)
    return lines, expected
