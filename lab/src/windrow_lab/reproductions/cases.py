"""The cases of the GLUME thesis, on which more than one paper runs: two logs, 36 workflows, 289
submission times.

KTH and SDSC; four applications of 50, 250 and 500 tasks and 100, 500 and 1000 hours of work
("short", "medium", "long"); every half hour from day 1 to day 7 of the log. Three of the thesis's
workflows, SIPHT with 500 tasks, are not public: they are generated. If a log or a workflow is
not found (workflows are looked for in `dax/glume/` of the data folder), a generated one of the same
size stands in, and the cases say so.

Also where any paper finds a public log: in the data folder and in `swf/` there.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from windrow_lab.campaign.sources import LogSource, WorkflowSource
from windrow_lab.reproductions.paper import printed

LOGS = {
    "KTH": "KTH-SP2-1996-2.1-cln.swf.gz",
    "SDSC": "SDSC-SP2-1998-4.2-cln.swf.gz",
    "CTC": "CTC-SP2-1996-3.1-cln.swf.gz",
    "SDSC-BLUE": "SDSC-BLUE-2000-4.2-cln.swf.gz",
}
"""Public logs, by the names that papers use."""

APPLICATIONS: Mapping[str, str] = {"C": "cybershake", "G": "genome", "M": "montage", "S": "sipht"}
SIZES = (50, 250, 500)
LENGTHS: Mapping[str, int] = {"short": 360_000, "medium": 1_800_000, "long": 3_600_000}
"""Work in seconds, by the thesis's word for it."""

SUBMIT_S = tuple(range(86_400, 604_801, 1800))
BEATS = 5.0
"""One strategy beats another on a workflow if its makespan is this percentage below, as a mean
over submissions."""

PRINTED_WINS: dict[tuple[str, str, str], tuple[int, int]] = {
    (log, requests, length): tuple(wins)
    for log, kinds in printed("glume")["table_7_1"].items()
    for requests, lengths in kinds.items()
    for length, wins in lengths.items()
}
"""Table 7.1: wins of GLUME and of Zhang, of 12 workflows."""

_STAND_INS = {"KTH": (100, "0.7", "1.0"), "SDSC": (128, "0.83", "3.0")}
_SYNTHETIC_DAYS = 60


def find_log(name: str, data: str | Path | None) -> LogSource | None:
    """The public log of that name; None if its file is not there."""
    if data is None:
        places = []
    else:
        places = [Path(data, "swf", LOGS[name]), Path(data, LOGS[name])]
    return next((LogSource(name, path=str(place)) for place in places if place.is_file()), None)


def logs_words(logs: Iterable[LogSource]) -> str:
    """Their names, and which of them are real."""
    return ", ".join(f"{log.name} ({'synthetic' if log.model else 'the real log'})" for log in logs)


def missing_log(name: str, fate: str) -> str:
    """A sentence about a log that was not found; `fate` says what becomes of it."""
    return f"The log {name} was not found ({LOGS[name]}): {fate}."


@dataclass(frozen=True, slots=True)
class Cases:
    """What is there to run on."""

    logs: tuple[LogSource, ...]
    workflows: tuple[WorkflowSource, ...]
    stand_ins: tuple[str, ...]


def find_cases(data: str | Path | None, sizes: tuple[int, ...] = SIZES) -> Cases:
    """The cases on what is found in the folder `data`, with workflows of these sizes."""
    logs = tuple(find_log(name, data) or _drawn_log(name) for name in _STAND_INS)
    workflows = tuple(_workflow(name, data) for name in configurations(sizes))
    fate = "a synthetic one on {} nodes stands in, so its figures cannot be compared with print"
    words = [missing_log(log.name, fate.format(log.nodes)) for log in logs if log.model]
    if made := [w.name for w in workflows if w.recipe]:
        words.append(f"Generated workflows, {len(made)} of {len(workflows)}: {', '.join(made)}.")
    return Cases(logs, workflows, tuple(words))


def _drawn_log(name: str) -> LogSource:
    nodes, load, overestimate = _STAND_INS[name]
    parameters = (("load", load), ("overestimate", overestimate))
    days = _SYNTHETIC_DAYS
    return LogSource(name, model="lublin", seed=1, days=days, nodes=nodes, parameters=parameters)


def configurations(sizes: tuple[int, ...] = SIZES) -> Iterator[str]:
    """Names as the thesis writes them: C-50-short, ..."""
    return (
        f"{app}-{size}-{length}" for app in APPLICATIONS for size in sizes for length in LENGTHS
    )


def _workflow(name: str, data: str | Path | None) -> WorkflowSource:
    app, size, length = name.split("-")
    recipe = APPLICATIONS[app]
    tasks = int(size)
    work_s = LENGTHS[length]
    file = f"{recipe.upper()}_{size}_{work_s}.dax.gz"
    if data is not None and (path := Path(data, "dax", "glume", file)).is_file():
        return WorkflowSource(name, path=str(path), tasks=tasks)
    return WorkflowSource(name, recipe=recipe, tasks=tasks, work_s=work_s, seed=1)
