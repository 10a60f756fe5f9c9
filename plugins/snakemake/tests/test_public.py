"""Only what Windrow promises to those who build on it is used."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "snakemake_executor_plugin_windrow"
PUBLIC = ("windrow", "windrow.api", "windrow.errors")


def test_only_the_public_names_of_windrow_are_imported() -> None:
    files = list(SOURCE.glob("*.py"))
    assert len(files) == 3
    for file in files:
        found = re.findall(r"^\s*(?:from|import)\s+(windrow[.\w]*)", file.read_text(), re.MULTILINE)
        assert set(found) <= set(PUBLIC), file.name
