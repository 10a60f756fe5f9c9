"""The JSON Schema of native files, for editors and other programs, made from the reader's tables.

Rule: which keys there are, how each is read, and how much is allowed is said in `schema.py` alone;
here stands what its ways to read look like in JSON, and what each key means.
`python -m windrow.formats.native.json_schema` prints the content of `native.schema.json`, which is
shipped; a test compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from windrow.agent.data.replicas import RULES
from windrow.formats.native import schema as reader
from windrow.formats.native.inside import RUNTIMES
from windrow.formats.native.matrix import RESERVED
from windrow.model.bounds import DURATION_S_MAX
from windrow.model.checkpoint import SIGNALS
from windrow.model.resources import GPUS, NOT_NAMES
from windrow.model.volume import POLICIES
from windrow.storage.roles import Role

Schema = dict[str, Any]

_MEANINGS: Mapping[str, str] = {
    "id": "The task's name, unique in the file; {name} is replaced.",
    "command": "A list is a program and its arguments and reaches no shell; a text is code for the "
    "shell.",
    "shell": "What runs a command that is a text. strict: bash -euo pipefail, or sh -eu without "
    "bash. A list: a program and its options, to which the text is appended.",
    "worker": "A program that is started once on each node, and starts such tasks by forking; for "
    "commands that are lists.",
    "inputs": "Files it reads; * means all such outputs of other tasks, or else files that exist. "
    "As a mapping: by the names that the command has for them.",
    "code": "More files that it reads, such as its script, which are not among {inputs}.",
    "outputs": "Files it writes; no other task may write them. As a mapping: each with its size, "
    "if known, or more; or by the names that the command has for them.",
    "expands": "A workflow file that it writes, one of its outputs ({outputs.expands}): the tasks "
    "of it join the run when this one has finished.",
    "keep": "false: of its outputs, those that tasks read are deleted once the last of these is "
    "done.",
    "outside": "true: it may write outside of the folder of the workflow file.",
    "after": "Tasks that come first: ids, families, or patterns with *. As a mapping: with ok if "
    "they have to succeed, any if it is enough that they are over, failed if it runs only then.",
    "at-end": "true: it runs when all others are over, whatever became of them.",
    "cores": "Cores of one node.",
    "nodes": "Whole nodes; 0 shares a node with others.",
    "memory": "500MB and 4GB in powers of 1000; 500MiB, 4GiB and 4G in powers of 1024. A list: for "
    "each try; the last entry lasts.",
    "gpus": "GPUs of one node, which no other task has meanwhile; a100:2 are two of a type.",
    "disk": "Disk of its node.",
    "resources": "Other resources of its node, as its queue calls them; united with those of "
    "defaults.",
    "runtime": "The run time that you expect: seconds, or a number with s, m, h, d or w. Learned "
    "if it is missing.",
    "time-limit": "After this time an attempt is ended, and has failed. A list: for each try; the "
    "last entry lasts.",
    "retries": "How often it is tried again when it fails.",
    "on-fail": "stop: if it fails, nothing more of the run starts.",
    "takes": "What it takes of limits of the run while it runs; a name alone takes 1.",
    "priority": "Of tasks that may start, those with the highest go first; 0 if it is missing.",
    "replicas": "How many attempts at it run at the same time, in different jobs; for commands "
    "that write to {outputs}.",
    "env": "Variables of its environment; united with those of defaults.",
    "setup": "Lines that a shell runs before the command, in the same environment.",
    "modules": "Modules that are loaded before the command: [gcc/12].",
    "venv": "A requirements file, of which an environment is made before the run, or a venv that "
    "there is; none: without that of defaults.",
    "conda": "An environment file, a name, or the path of an environment; none: without that of "
    "defaults.",
    "container": "An image that the command runs in; none: without that of defaults.",
    "workdir": "Where it runs, from the file's folder, which is the default.",
    "kind": "Tasks of one kind are expected to run alike; default: the family's name.",
    "site": "The site at which it must run.",
    "where": "A condition on the site and its nodes, such as gpus >= 1 && speed > 1.",
    "matrix": "Names with values; the task is repeated for every combination.",
    "checkpoint": "Files from which the next attempt continues where this one was ended.",
    "mounts": "Volumes by the whole path at which it sees each; or their names, then variables "
    "tell where they are.",
    "extract": "Files of its volumes that are kept when it has succeeded, with the names that they "
    "get.",
}


_PART = r"^[A-Za-z_][A-Za-z0-9_]*$"


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _table(properties: Mapping[str, Schema], *required: str, **more: Any) -> Schema:
    """A mapping that takes these keys and no others."""
    needed = {"required": list(required)} if required else {}
    return {
        "type": "object",
        **needed,
        "additionalProperties": False,
        **more,
        "properties": dict(properties),
    }


def _names(pattern: str, values: Schema) -> Schema:
    """A mapping of names that people choose."""
    return {
        "type": "object",
        "propertyNames": {"pattern": pattern},
        "additionalProperties": values,
    }


def _one_or_more(one: Schema, least: int = 0) -> Schema:
    several: Schema = {"type": "array", "items": one}
    if least:
        several["minItems"] = least
    return {"anyOf": [one, several]}


def _name_but(*taken: str) -> str:
    return rf"^(?!({'|'.join(sorted(taken))})$)[A-Za-z][A-Za-z0-9_]{{0,63}}$"


def _command(_key: str) -> Schema:
    words = {"type": "array", "prefixItems": [_ref("text")], "minItems": 1, "items": _ref("value")}
    return {"anyOf": [_ref("text"), words]}


def _shell(_key: str) -> Schema:
    words = {"type": "array", "prefixItems": [_ref("text")], "minItems": 2, "items": _ref("value")}
    return {"anyOf": [{"enum": list(reader.SHELL_NAMES)}, words]}


def _container(_key: str) -> Schema:
    what: dict[str, Schema] = {
        "image": {**_ref("text"), "description": "A name, a URL, a file or a folder."},
        "runtime": {
            "description": "By what it is run; what is found first if it is missing.",
            "enum": list(RUNTIMES),
        },
        "options": {**_ref("texts"), "description": "Options of that."},
    }
    table = _table({key: what[key] for key in reader.CONTAINER_KEYS}, "image")
    return {"anyOf": [_ref("text"), table]}


def _worker(_key: str) -> Schema:
    return {"type": "array", "minItems": 1, "items": _ref("text")}


def _inputs(_key: str) -> Schema:
    return {"anyOf": [_ref("texts"), _names(_PART, _some_texts())]}


def _some_texts() -> Schema:
    """One, or a list that is not empty."""
    return _one_or_more(_ref("text"), 1)


def _outputs(_key: str) -> Schema:
    named = {"type": "string", "pattern": r"^[^0-9].*\S|^[^0-9\s]$"}
    either = {
        "type": "object",
        "patternProperties": {_PART: {"anyOf": [_ref("file"), named]}},
        "additionalProperties": _ref("file"),
    }
    return {"anyOf": [_ref("texts"), either]}


def _count(key: str) -> Schema:
    least, most = reader.COUNTS[key]
    return {"type": "integer", "minimum": least, "maximum": most}


def _memory(_key: str) -> Schema:
    number = r"[0-9]{1,12}(\.[0-9]{1,6})?"
    unit = r"([kKmMgGtTpP](i?[bB]?)?|[bB])"
    return {"type": "string", "pattern": rf"^(?!0*(\.0*)? ?[kKmMgGtTpPbB]){number} ?{unit}$"}


def _duration(_key: str) -> Schema:
    zero = r"0*(\.0*)?([eE].*)? ?[smhdwSMHDW]?$"
    number = r"[0-9]{1,12}(\.[0-9]*)?([eE][+-]?[0-9]{1,2})?"
    return {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0, "maximum": DURATION_S_MAX},
            {"type": "string", "pattern": rf"^(?!{zero}){number} ?[smhdwSMHDW]?$"},
        ]
    }


def _after(_key: str) -> Schema:
    kinds = {"type": "object", "propertyNames": {"pattern": r"\S"}}
    return {
        "anyOf": [_ref("texts"), {**kinds, "additionalProperties": {"enum": list(reader.EDGES)}}]
    }


def _takes(key: str) -> Schema:
    return {"anyOf": [_some_texts(), _names(_name_but(*NOT_NAMES, GPUS), _count(key))]}


def _checkpoint(_key: str) -> Schema:
    what: dict[str, Schema] = {
        "files": {
            "description": "Patterns of the checkpoint files, from the folder of the task; * "
            "stands for any characters but /.",
            **_one_or_more(_ref("pattern"), 1),
        },
        "signal": {"description": "Asks the task to write them.", "enum": list(SIGNALS)},
        "notice": {
            **_ref("runtime"),
            "description": "How long before an end it is asked; 60s if it is missing.",
        },
        "every": {**_ref("runtime"), "description": "How often it is asked while it runs."},
        "keep_existing": {
            "description": "true: files that are there before the run stay, and it may start from "
            "them.",
            "type": "boolean",
        },
    }
    properties = {key: what[key] for key in reader.CHECKPOINT_KEYS}
    return _table(properties, "files", dependentRequired={"every": ["signal"]})


def _matrix(_key: str) -> Schema:
    steps = [{"type": "integer"}, {"type": "integer"}, {"type": "integer", "minimum": 1}]
    numbers = {"type": "array", "minItems": 2, "maxItems": 3, "prefixItems": steps}
    values = {"type": "array", "minItems": 1, "uniqueItems": True, "items": _ref("value")}
    span = {"type": "string", "pattern": r"^[0-9]{1,12}\.\.[0-9]{1,12}$"}
    files = {"type": "string", "pattern": r"^[^{}*]*\{\}[^{}*]*$"}
    left_out = {"type": "object", "minProperties": 1, "additionalProperties": _ref("value")}
    table = {"type": "string", "pattern": r"\.[ct]sv$"}
    names = {
        "type": "object",
        "minProperties": 1,
        "propertyNames": {
            "pattern": "^[A-Za-z_][A-Za-z0-9_]*$",
            "not": {"enum": ["id", "inputs", "outputs", "cores", "range"]},
        },
        "properties": {"exclude": {"type": "array", "items": left_out}, "table": table},
        "additionalProperties": {
            "anyOf": [values, span, files, _table({"range": numbers}, "range")]
        },
        "not": {"required": ["exclude"], "maxProperties": 1},
    }
    return {"anyOf": [names, table]}


def _gpus(key: str) -> Schema:
    """A number, or one of a type."""
    typed = r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}:0*[1-9][0-9]{0,5}$"
    return {"anyOf": [_count(key), {"type": "string", "pattern": typed}]}


def _mounts(_key: str) -> Schema:
    at_paths = _names(r"^/[^{\u0000]*[^/.{\u0000][^{\u0000]*$", _ref("text"))
    return {"anyOf": [_ref("texts"), at_paths]}


def _site(_key: str) -> Schema:
    return {"type": ["string", "number", "boolean"], "pattern": r"^[^',]*[^\s',][^',]*$"}


_SHAPES: Mapping[str, Callable[[str], Schema]] = {
    "text": lambda _: _ref("text"),
    "texts": lambda _: _ref("texts"),
    "kind": lambda _: _ref("text"),
    "where": lambda _: _ref("text"),
    "truth": lambda _: {"type": "boolean"},
    "command": _command,
    "shell": _shell,
    "worker": _worker,
    "lines": lambda _: _ref("texts"),
    "plain_texts": lambda _: _ref("texts"),
    "place": lambda _: _ref("text"),
    "container": _container,
    "inputs": _inputs,
    "outputs": _outputs,
    "count": _count,
    "gpus": _gpus,
    "memory": _memory,
    "memories": lambda key: _one_or_more(_memory(key), 1),
    "duration": _duration,
    "durations": lambda key: _one_or_more(_duration(key), 1),
    "after": _after,
    "takes": _takes,
    "on_fail": lambda _: {"enum": list(reader.ON_FAIL)},
    "resources": lambda key: _names(_name_but(*NOT_NAMES, GPUS), _count(key)),
    "env": lambda _: _names(r"^[^=\u0000]+$", _ref("value")),
    "site": _site,
    "matrix": _matrix,
    "checkpoint": _checkpoint,
    "mounts": _mounts,
    "extract": lambda _: _names(r"\S", _ref("text")),
}
"""What each way to read takes, as a schema of a key."""


def native_schema() -> Schema:
    """The schema of a native file."""
    keys = {
        key: {"description": _MEANINGS[key], **_SHAPES[how](key)}
        for key, how in reader.WAYS.items()
    }
    properties = {key: _ref(key) for key in keys}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Windrow workflow",
        "description": "A workflow with real commands. What a schema cannot say (unknown tasks in "
        "after, circles, two writers of one file, unknown placeholders) the reader checks.",
        **_table({key: _workflow()[key] for key in reader.WORKFLOW_KEYS}),
        "anyOf": [{"required": ["tasks"]}, {"required": ["include"]}],
        "$defs": {
            "task": _table({key: properties[key] for key in reader.TASK_KEYS}, "id", "command"),
            "defaults": _defaults(),
            **keys,
            "file": _file(),
            "volume": {"anyOf": [_cache(), _scratch()]},
            "pattern": {
                "anyOf": [
                    {"type": "string", "pattern": r"^(?!/)(?!(.*/)?\.\.(/|$)).*[^*./ \s]"},
                    {"type": ["number", "boolean"]},
                ]
            },
            "texts": _one_or_more(_ref("text")),
            "text": {
                "anyOf": [
                    {"type": "string", "pattern": r"\S"},
                    {"type": ["number", "boolean"]},
                ]
            },
            "value": {"type": ["string", "number", "boolean"]},
        },
    }


def _defaults() -> Schema:
    return {
        "description": "Values for all tasks that do not state their own.",
        **_table({key: _ref(key) for key in reader.DEFAULT_KEYS}),
    }


def _workflow() -> dict[str, Schema]:
    return {
        "name": {
            **_ref("text"),
            "description": "The workflow's name; the file's name if it is missing.",
        },
        "include": {
            "description": "Files whose tasks, vars and limits are part of this one.",
            **_ref("texts"),
        },
        "vars": {
            "description": "Values that stand for their names in braces, in all tasks.",
            "type": "object",
            "propertyNames": {"pattern": _PART, "not": {"enum": sorted(RESERVED)}},
            "additionalProperties": _ref("value"),
        },
        "defaults": _ref("defaults"),
        "kinds": {
            "description": "Values for all tasks of a kind that do not state their own.",
            "type": "object",
            "additionalProperties": {
                key: value for key, value in _defaults().items() if key != "description"
            },
        },
        "sites": {
            "description": "What tasks run in at a site, by its name, if they say nothing "
            "themselves: setup, modules, container.",
            **_names(r"^[^',]*[^\s',][^',]*$", _table({key: _ref(key) for key in reader.AT_SITES})),
        },
        "limits": {
            "description": "How much there is, for all tasks together, of what tasks take.",
            **_names(_name_but(*NOT_NAMES, GPUS), _count("limits")),
        },
        "files": {
            "description": "What is known of files, by names or patterns with *.",
            "type": "object",
            "additionalProperties": _ref("file"),
        },
        "stays": {
            "description": "Files with the site that each must not leave: what reads or writes it "
            "runs there.",
            "type": "object",
            "additionalProperties": _ref("site"),
        },
        "home": {
            **_ref("text"),
            "description": "Where from: and extract: count from, a folder or a URL; the file's "
            "folder if it is missing.",
        },
        "volumes": {
            "description": "Named pieces of space that tasks mount.",
            **_names(_name_but(*NOT_NAMES), _ref("volume")),
        },
        "tasks": {
            "description": "What is to run.",
            "type": "array",
            "minItems": 1,
            "items": _ref("task"),
        },
    }


def _file() -> Schema:
    what: dict[str, Schema] = {
        "size": {**_ref("disk"), "description": "Its size, as far as it is known."},
        "keep": {
            "description": "false: it is deleted once no task needs it, result or not.",
            "type": "boolean",
        },
        "role": {
            "description": "How tasks use it; by default that follows from who reads and writes "
            "it.",
            "enum": [str(role) for role in Role],
        },
    }
    table = _table({key: what[key] for key in reader.FILE_KEYS}, minProperties=1)
    return {
        "description": "A file's size; or a mapping. keep: false deletes it once no task needs it "
        "any more.",
        "anyOf": [_ref("disk"), {"type": "null"}, table],
    }


def _cache() -> Schema:
    what: dict[str, Schema] = {
        "from": {**_ref("text"), "description": "The file or folder that it shows, from home."},
        "size": {**_ref("disk"), "description": "Of a cache volume: its size."},
        "policy": {
            "description": "What is given up first if it does not fit.",
            "enum": list(POLICIES),
        },
    }
    return {
        "description": "A cache volume: files at home, read-only.",
        **_table({key: what[key] for key in reader.CACHE_KEYS}, "from", "size"),
    }


def _scratch() -> Schema:
    what: dict[str, Schema] = {
        "scratch": {**_ref("disk"), "description": "The volume is empty at first, and this large."},
        "per": {
            **_ref("text"),
            "description": "There is one for each text that this becomes.",
        },
        "replicas": {
            "description": "When it is copied from its node against loss.",
            "enum": list(RULES),
        },
    }
    return {
        "description": "A scratch volume, empty at first; one for each text of per.",
        **_table({key: what[key] for key in reader.SCRATCH_KEYS}, "scratch"),
    }


def written() -> str:
    """The content of the file."""
    return json.dumps(native_schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    print(written(), end="")
