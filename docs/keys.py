"""The pages of every key of a workflow file and of windrow.toml: what a key means, from the tables
of the reader and the parser of `windrow run`, and how it is written, from examples that the tests
run (`examples/every-key`, `examples/every-setting`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from windrow.cli.main import parser_of
from windrow.formats.native.json_schema import native_schema
from windrow.formats.native.schema import DEFAULT_KEYS

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
_HEAD = re.compile(r"\[(\w+)(?:\.(\w+))?\]\s*(?:# (.*))?")
_LINE = re.compile(r"(\w+) = (.*?)(?:  # (.*))?")


def workflow_keys() -> Iterator[tuple[str, str, str]]:
    """Each key of a workflow file: its path, as in `task: checkpoint: files`, its name and what it
    means."""
    schema = native_schema()
    for key, said in schema["properties"].items():
        yield key, key, _meaning(schema, said)
        if key == "files":
            yield from _below(schema, f"{key}: NAME", schema["$defs"]["file"]["anyOf"][2])
        if key == "volumes":
            for kind in schema["$defs"]["volume"]["anyOf"]:
                yield from _below(schema, f"{key}: NAME", kind)
    for key in schema["$defs"]["task"]["properties"]:
        said = schema["$defs"][key]
        yield f"task: {key}", key, _meaning(schema, said)
        table = said if said.get("properties") else _table_in(said)
        if table is not None and key != "matrix":
            yield from _below(schema, f"task: {key}", table)
    yield from MATRIX


MATRIX = (
    ("task: matrix: table", "table", "A file of values that belong together: a line is one task."),
    ("task: matrix: exclude", "exclude", "Combinations that are left out."),
    ("task: matrix: NAME: range", "range", "First and last number, and a step if you like."),
)


def _table_in(said: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return next((one for one in said.get("anyOf", ()) if one.get("properties")), None)


def _below(
    schema: Mapping[str, Any], path: str, table: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    for key, said in table["properties"].items():
        yield f"{path}: {key}", key, _meaning(schema, said)


def _meaning(schema: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    if "description" in said:
        return str(said["description"])
    name = said.get("$ref", "").rpartition("/")[2]
    return str(schema["$defs"].get(name, {}).get("description", ""))


def example_of(path: str) -> str:
    """Where the examples have this key: its line, with what is below it."""
    above = ["tasks" if name == "task" else name for name in path.split(": ") if name != "NAME"]
    key = above.pop()
    for name in ("workflow", "elsewhere"):
        lines = (EXAMPLES / "every-key" / f"{name}.yaml").read_text().splitlines()
        blocks = [lines]
        if above:
            starts = (n for n, line in enumerate(lines) if _has(line, above[-1]))
            blocks = [list(_with_what_is_below(lines, start)) for start in starts]
        for block in blocks:
            for number, line in enumerate(block):
                if _has(line, key):
                    return "\n".join(_with_what_is_below(block, number))
    return ""


def _has(line: str, key: str) -> bool:
    return re.match(rf"(\s*(- )?)({key}):( |$)", line) is not None or (
        re.search(rf"[{{ ]{key}: [\[{{]", line) is not None
    )


def _with_what_is_below(lines: list[str], number: int) -> Iterator[str]:
    first = lines[number].replace("- ", "  ", 1)
    deep = len(first) - len(first.lstrip())
    yield first.strip()
    for line in lines[number + 1 :]:
        below = len(line) - len(line.lstrip())
        if line.strip() and below <= deep:
            return
        if line.strip():
            yield line[deep:]


def workflow_page() -> str:
    """Every key of a workflow file."""
    parts = [
        "# Every key of a workflow file",
        "More about each: [native workflows](../reference/native-workflows.md). The examples are "
        "from `examples/every-key`, which runs as it is.",
    ]
    usual = "`defaults` and `kinds` take it, too."
    for path, key, meaning in workflow_keys():
        more = f" {usual}" if path == f"task: {key}" and key in DEFAULT_KEYS else ""
        parts.append(f"## `{path}`")
        parts.append(f"{meaning}{more}")
        parts.append(f"```yaml\n{example_of(path)}\n```")
    return "\n\n".join(parts) + "\n"


def settings() -> Iterator[tuple[str, str, str, str]]:
    """Each key of windrow.toml: its table, its name, an example and what it means."""
    options = {
        option.dest: parser._get_formatter()._expand_help(option)
        for parser in [parser_of("run", 84)]
        for option in parser._actions
        if option.help
    }
    table = ""
    for line in (EXAMPLES / "every-setting" / "windrow.toml").read_text().splitlines():
        if found := _HEAD.fullmatch(line):
            table = f"{found[1]}.{found[2]}" if found[2] else found[1]
            yield table, "", f"[{table}]", found[3] or ""
        elif found := _LINE.fullmatch(line):
            said = found[3] or options.get(found[1], "")
            yield table, found[1], f"{found[1]} = {found[2]}", said


def settings_page() -> str:
    """Every key of windrow.toml."""
    parts = [
        "# Every key of windrow.toml",
        "It is looked for in the folder where a command runs, in those above it, then in "
        "`~/.config/windrow`. More: [queues](../reference/queues.md), "
        "[sites](../reference/sites.md).",
    ]
    for table, key, example, meaning in settings():
        if not key:
            parts.append(f"## `[{table}]`\n\n{meaning}\n\n| key | meaning |\n| --- | --- |")
        else:
            parts[-1] += f"\n| `{example}` | {meaning} |"
    return "\n\n".join(parts) + "\n"


PAGES = {"workflow": workflow_page, "settings": settings_page}


def write(folder: Path) -> None:
    """Write the pages that are not there as they should be."""
    folder.mkdir(exist_ok=True)
    for name, make in PAGES.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != make():
            path.write_text(make(), encoding="utf-8")
