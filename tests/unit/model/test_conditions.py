"""Conditions hold where Python would say so of the same text, and errors point at the character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import InputError
from windrow.model.conditions import conjuncts, parse_condition

_NUMBERS = st.integers(0, 3)
_COMPARISONS = st.builds(
    "{} {} {}".format,
    st.sampled_from("ab"),
    st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    _NUMBERS,
)
_TEXTS = st.recursive(
    _COMPARISONS,
    lambda inner: (
        st.builds("!({})".format, inner)
        | st.builds("({} && {})".format, inner, inner)
        | st.builds("({} || {})".format, inner, inner)
        | st.builds("({} || {} && {})".format, inner, inner, inner)
    ),
    max_leaves=8,
)


@given(_TEXTS, _NUMBERS, _NUMBERS)
def test_a_condition_holds_where_python_says_so(text: str, a: int, b: int) -> None:
    python = text.replace("&&", " and ").replace("||", " or ").replace("!(", " not (")
    assert parse_condition(text).holds({"a": a, "b": b}) == eval(python, {}, {"a": a, "b": b})


def test_texts_sizes_and_what_is_missing() -> None:
    has: dict[str, float | str] = {"gpu": "A100", "memory": 256 * 2**30}
    assert parse_condition("GPU == 'a100' && Memory >= 128GiB").holds(has)
    assert parse_condition("processor != OPTERON").holds(has)
    assert not parse_condition(
        "processor == OPTERON || disk > 0 || gpu == 100 || memory == a100"
    ).holds(has)
    parts = conjuncts(parse_condition("a == 1 && (b == 2 || c == 3)"))
    assert [part.text for part in parts] == ["a == 1", "b == 2 || c == 3"]


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("a = 3", 3, "after a must be =="),
        ("a == ", 6, "a number, a word or a 'text'"),
        ("(a == 1", 8, "expected ')'"),
        ("a == 1 b", 8, "found 'b'"),
        ("a < word", 5, "compares numbers only"),
        ("a >= 3xx", 6, "is not a size"),
        ("a == 'x", 6, "does not end"),
        ("a == 1 @", 8, "'@' is not expected"),
        ("(" * 99, 41, "nested deeper"),
    ],
)
def test_an_error_points_at_the_character(text: str, at: int, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_condition("\n" + text, "wf.yaml", line=7)
    first, shown, caret = str(caught.value).split("\n")
    assert first.startswith(f"wf.yaml:8: character {at}: ")
    assert words in first
    assert text.startswith(shown[2:])
    assert caret == " " * (at + 1) + "^"
