"""Sizes and roles that were found, written into a native workflow: its text stays as it is, but for the files added.

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
    """The text of the workflow with size (bytes) and role of those of its files that were found, by whole path."""
    if format_suffix(path) not in (".yaml", ".yml"):
        raise InputError(path, "sizes and roles can be written into native workflows only", fix="name a .yaml file")
    runnable, text = read_runnable(path), read_text(path)
    lines = []
    for file in runnable.workflow.files:
        size, role = found.get(os.path.realpath(whole_path(runnable.steps[0].workdir, file.id)), (0, ""))
        facts = [f"size: {size}B"] * bool(size) + [f"role: {role}"] * bool(role)
        if facts and not (file.size_bytes or file.role):
            lines.append(f"  {json.dumps(file.id, ensure_ascii=False)}: {{{', '.join(facts)}}}\n")
    if not lines:
        return text
    head = re.search(r"^files:[ \t]*(.*)\n", text, re.MULTILINE)
    if head and head[1] and not head[1].startswith("#"):
        line = text.count("\n", 0, head.start()) + 1
        raise InputError(
            path, "files is written in one line", line=line, fix="write each of them in a line below files:"
        )
    at = head.end() if head else len(text)
    return text[:at] + ("" if head else "\n" * (not text.endswith("\n")) + "files:\n") + "".join(lines) + text[at:]
