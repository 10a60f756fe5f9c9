"""The documentation has two parts: one for users, short, and one behind it, also for the search."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.browser import opened
from tests.docs.pages import ROOT

DOCS = ROOT / "docs"
SECOND = ':caption: "Second part'
MOST_WORDS = 25_000
MADE = ("commands/", "keys/")
"""Pages that are made of parsers, tables and examples."""
_TREE = re.compile(r"```\{toctree\}\n(.*?)```", re.S)
_MESSAGE = re.compile(r"^\| (?:state |cause )?`([^`]+)`", re.M)


def named(text: str) -> list[str]:
    """The pages in the tables of contents of a text."""
    lines = "\n".join(_TREE.findall(text)).splitlines()
    return [line for line in lines if line and not line.startswith(":")]


def parts() -> tuple[list[str], list[str]]:
    first, second = (DOCS / "index.md").read_text().split(SECOND)
    first = first[: first.rindex("```{toctree}")]
    return ["index", *named(first)], named("```{toctree}\n" + second)


def test_every_page_is_in_one_part() -> None:
    first, second = parts()
    there = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.glob("*/*.md")}
    listed = {name for name in (*first, *second) if name != "index"}
    assert {name for name in listed if not name.startswith(MADE)} == {
        name for name in there if not name.startswith(MADE)
    }


def test_what_users_read_is_short() -> None:
    """What is made of parsers is not written by hand."""
    first, _ = parts()
    pages = [DOCS / f"{name}.md" for name in first if not name.startswith(MADE)]
    words = sum(len(page.read_text().split()) for page in pages)
    assert words <= MOST_WORDS


def test_the_search_knows_which_pages_are_first() -> None:
    text = (DOCS / "scorer.js").read_text()
    found = "".join(re.findall(r'^\s*(?:\+ )?"(.*)"', text, re.M)[1:])
    pattern = re.compile(found)
    first, second = parts()
    assert [name for name in first if not pattern.search(name)] == []
    assert [name for name in second if pattern.search(name)] == []


def test_messages_that_are_explained_are_those_that_come() -> None:
    """The fixed words of each stand in the source."""
    page = (DOCS / "reference" / "troubleshooting.md").read_text()
    page = page[: page.index("## Pages and terminals")]
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    source = re.sub(r'"\s*\n\s*f?"', "", source)
    source = re.sub(r"\{[^{}]*\}", "...", source)
    messages = _MESSAGE.findall(page)
    assert len(messages) > 15
    for message in messages:
        for words in re.split(r"\.\.\.|\bN\b", message):
            assert words.strip(" ;:,") in source or words in ("No space left on device",), words


@pytest.mark.slow
def test_search_answers_users_first(tmp_path: Path) -> None:
    """As the browser that shows the page ranks its finds."""
    scorer = (DOCS / "scorer.js").read_text()
    found = [
        [name, "", "", None, score, f"{name}.md"]
        for name, score in (("theory/agent", 15), ("start/on-slurm", 2), ("how-to/space", 5))
    ]
    with opened() as browser:
        browser.open("about:blank")
        order = browser.run(
            f"{scorer}\nreturn arguments[0].sort((a, b) => Scorer.score(b) - Scorer.score(a))"
            ".map((one) => one[0]);",
            found,
        )
    assert order == ["how-to/space", "start/on-slurm", "theory/agent"]
