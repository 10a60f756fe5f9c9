"""Sizes and roles that were found, written into a native workflow: its text stays as it is, but for
the files added.

Rule: what the file says already stays: a file whose size or role is said is left alone.
"""

import json
import os
import re
from collections.abc import Mapping

from windrow.errors import InputError
from windrow.formats.disk import format_suffix, read_text
from windrow.formats.open import read_runnable
from windrow.model.workflow import whole_path


def with_files(path: str, found: Mapping[str, tuple[int, str]]) -> str:
    """The text of the workflow with size (bytes) and role of those of its files that were found, by
    whole path."""
    if format_suffix(path) not in (".yaml", ".yml"):
        raise InputError(
            path,
            "sizes and roles can be written into native workflows only",
            fix="name a .yaml file",
        )
    runnable = read_runnable(path)
    folder = runnable.steps[0].workdir
    lines = ""
    for file in runnable.workflow.files:
        facts = _facts(*found.get(os.path.realpath(whole_path(folder, file.id)), (0, "")))
        if facts and not (file.size_bytes or file.role):
            lines += f"  {json.dumps(file.id, ensure_ascii=False)}: {{{', '.join(facts)}}}\n"
    if not lines:
        return read_text(path)
    return _with_lines(path, read_text(path), lines)


def _facts(size: int, role: str) -> list[str]:
    facts = []
    if size:
        facts.append(f"size: {size}B")
    if role:
        facts.append(f"role: {role}")
    return facts


def _with_lines(path: str, text: str, lines: str) -> str:
    """The text with these lines below `files:`."""
    head = re.search(r"^files:[ \t]*(.*)\n", text, re.MULTILINE)
    if head is None:
        if not text.endswith("\n"):
            text += "\n"
        return f"{text}files:\n{lines}"
    if head[1] and not head[1].startswith("#"):
        line = text.count("\n", 0, head.start()) + 1
        raise InputError(
            path,
            "files is written in one line",
            line=line,
            fix="write each of them in a line below files:",
        )
    return text[: head.end()] + lines + text[head.end() :]
