"""What queues refuse before anything is asked of them."""

from __future__ import annotations

import re

import pytest

from windrow.model import NodeShape
from windrow.queues.port import JobSpec, Limits, SpecError
from windrow.queues.spec import check, check_form, check_size, check_spec

LIMITS = Limits(nodes=8, shape=NodeShape(), max_nodes=4, max_walltime_s=3600, max_array=3)


def a_spec(tag: str = "a", nodes: int = 1, walltime_s: int = 60) -> JobSpec:
    return JobSpec(tag, nodes, walltime_s, ("true",), "/", "/o")


@pytest.mark.parametrize(
    "wrong",
    [
        JobSpec("a b", 1, 60, ("true",), "/", "/o"),
        JobSpec("", 1, 60, ("true",), "/", "/o"),
        JobSpec("a\n", 1, 60, ("true",), "/", "/o"),
        JobSpec("a", 1, 60, (), "/", "/o"),
        JobSpec("a", 1, 60, ("", "x"), "/", "/o"),
        JobSpec("a", 1, 60, ("tr\0ue",), "/", "/o"),
        JobSpec("a", 1, 60, ("true",), "/\0", "/o"),
        JobSpec("a", 1, 60, ("true",), "/", "/\0o"),
    ],
)
def test_what_no_queue_could_run(wrong: JobSpec) -> None:
    for refuse in (
        check_form,
        lambda spec: check_spec(spec, LIMITS),
        lambda spec: check([a_spec(), spec], LIMITS),
    ):
        with pytest.raises(SpecError, match=re.escape(f"job {wrong.tag!r}: ")):
            refuse(wrong)


@pytest.mark.parametrize(
    ("nodes", "walltime_s", "words"),
    [
        (0, 60, "requests 0 nodes; queue night allows 1 to 4"),
        (5, 60, "requests 5 nodes; queue night allows 1 to 4"),
        (1, 0, "requests 0 s; a job requests at least 1 s"),
        (1, 3601, "requests 3601 s; queue night allows at most 3600 s"),
    ],
)
def test_what_the_limits_do_not_give(nodes: int, walltime_s: int, words: str) -> None:
    with pytest.raises(SpecError, match=f"job 'a': it {words}"):
        check_spec(a_spec("a", nodes, walltime_s), LIMITS, "queue night")
    with pytest.raises(SpecError, match=words.replace("queue night", "this queue")):
        check_size(nodes, walltime_s, LIMITS)


def test_what_just_fits_is_taken() -> None:
    check([a_spec("a", 4, 3600), a_spec("b", 1, 1), a_spec("c")], LIMITS, taken={"d"})
    check_spec(a_spec("a", 8, 10**6), Limits(nodes=8, shape=NodeShape()))


def test_tags_are_used_once_and_arrays_have_an_end() -> None:
    for specs in ([a_spec("a"), a_spec("a")], [a_spec("d")]):
        with pytest.raises(SpecError, match="its own tag"):
            check(specs, LIMITS, taken={"d"})
    with pytest.raises(SpecError, match="at most 3 jobs, not 4"):
        check([a_spec(tag) for tag in "abcd"], LIMITS)
