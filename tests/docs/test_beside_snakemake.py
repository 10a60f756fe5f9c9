"""The pipelines that stand beside Snakefiles: no name of a file is typed twice in one task."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tests.docs.pages import ROOT, Block, blocks

_FILE = re.compile(r"(?<![\w{}/.*-])[\w{}/*-]+\.(?:fq|fa|bam|vcf|txt|py|bwt)\b")
SHOWN = [
    block
    for block in blocks(ROOT / "docs" / "reference" / "beside-snakemake.md")
    if block.language == "yaml"
]


def test_both_are_there() -> None:
    assert [block.file for block in SHOWN] == ["variants.yaml", "sweep.yaml"]


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: str(block.file))
def test_no_file_is_named_twice_in_a_task(block: Block) -> None:
    tasks = block.text.split("- id: ")[1:]
    assert len(tasks) >= 2
    named = [Counter(_FILE.findall(task)) for task in tasks]
    assert all(named)
    assert [names for names in named if max(names.values()) > 1] == []
