"""The manual says what the parsers say, in formats that are read as such."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from windrow.cli import manual
from windrow.cli.main import COMMANDS, parser_of


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_every_option_of_its_command(name: str) -> None:
    told = manual.page(name)
    said = " ".join(form for group in told.groups for form, _ in group.options)
    for option in parser_of(name)._option_string_actions:
        hidden = parser_of(name)._option_string_actions[option].help == "==SUPPRESS=="
        assert hidden or option in said
    assert told.usage.startswith(f"windrow {name} ")
    assert told.summary in manual.as_markdown(told).replace("\\", "")


def test_all_commands_and_exit_codes_are_listed() -> None:
    index = manual.index()
    assert re.findall(r"^- \[windrow (\S+)\]", index, re.M) == list(manual.commands())
    assert "| 2 | the input is wrong, and nothing was started |" in index


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff")
@pytest.mark.slow
def test_man_pages_are_understood(tmp_path: Path) -> None:
    for name, text in manual.man_pages().items():
        path = tmp_path / name
        path.write_text(text)
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-Kutf8", "-ww", str(path)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stderr == ""
        assert name.removesuffix(".1") in done.stdout.lower()
