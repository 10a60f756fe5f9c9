"""What the tables of a campaign file stand for: logs, workflows, strategies and rules, each under a
name of its own.

Rule: one table may stand for several entries, by lists among its values or by a pattern of file
names; what makes an entry differ becomes part of its name.
"""

import glob
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar, cast

from windrow.app.strategies import find_strategy
from windrow.formats.disk import bare_name
from windrow.model import Workflow
from windrow.model.bounds import COUNT_MAX, NODES_MAX, SEED_MAX
from windrow.recipes import generate_workflow
from windrow.recipes.workflows.catalog import WORKFLOW_RECIPES
from windrow.sim.settings import ClusterSettings
from windrow.strategies import Strategy
from windrow_lab.campaign.campaign import BatchRules
from windrow_lab.campaign.sources import LogSource, WorkflowSource
from windrow_lab.campaign.toml_tables import (
    TomlTable,
    as_texts,
    is_number,
    is_whole,
    joined,
    tables,
    variants,
)

T = TypeVar("T")

_AS_THESIS = "windrow_lab.reproductions.glume.log:ThesisLog"  # by name: the lab knows no paper
_NAME = re.compile(r"[^\x00-\x1f/\\]{1,80}")


@dataclass(frozen=True, slots=True)
class RecipeWorkflow(WorkflowSource):
    """A workflow by a recipe with parameters of its own."""

    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def content(self) -> str:
        """What the workflow will be, in a few words that change whenever it does."""
        return (
            f"recipe {self.recipe} {self.tasks} {self.work_s} {self.seed} {sorted(self.parameters)}"
        )

    def load(self) -> Workflow:
        """The workflow itself."""
        given = dict(self.parameters)
        return generate_workflow(
            self.recipe, tasks=self.tasks, work_s=self.work_s, seed=self.seed, parameters=given
        )


def entries(
    top: TomlTable,
    key: str,
    short: str,
    make: Callable[[TomlTable, str], Iterator[T]],
    default: list[str] | None = None,
) -> list[tuple[TomlTable, T]]:
    """Everything that the tables of a key stand for, each with its table."""
    given = top.take(key, default)
    if given is None or given == []:
        raise top.fault(key, "none is given", f"add a table [[{key}]]")
    found: list[tuple[TomlTable, T]] = []
    for table in tables(top.file, key, given, short):
        for one, words in variants(table):
            with one.telling():
                found += [(one, value) for value in make(one, words)]
            one.finish()
    seen: set[object] = set()
    for table, value in found:
        name = getattr(value, "name", value)
        if name in seen:
            raise table.fault("name", f"{name} occurs twice", 'give each its own name = "..."')
        seen.add(name)
    return found


def _named(table: TomlTable, default: str, words: str) -> str:
    name = joined([table.text("name", default), words])
    if not _NAME.fullmatch(name):
        fix = 'give name = "..." of at most 80 characters without slashes'
        raise table.fault("name", f"{name[:100]!r} cannot be part of a file's name", fix)
    return name


def logs(table: TomlTable, words: str) -> Iterator[LogSource]:
    """SWF files, or a log by a model."""
    _one_of(table, "file", "model")
    nodes = table.whole("nodes", None, 1, NODES_MAX)
    if "file" in table.values:
        kind: type[LogSource] = resolve_name(_AS_THESIS) if table.truth("as_thesis") else LogSource
        for path, default in _files(table):
            yield kind(_named(table, default, words), path=path, nodes=nodes)
    else:
        yield _drawn_log(table, words, nodes)


def _drawn_log(table: TomlTable, words: str, nodes: int | None) -> LogSource:
    model = table.text("model")
    seed = cast(int, table.whole("seed", 0, 0, SEED_MAX))
    days = table.take("days")
    if days is not None and not is_number(days):
        raise table.fault("days", "must be a number")
    name = _named(table, model, words)
    parameters = as_texts(table.rest())
    return LogSource(name, model=model, seed=seed, days=days, nodes=nodes, parameters=parameters)


def workflows(table: TomlTable, words: str) -> Iterator[WorkflowSource]:
    """Workflow files, or a workflow by a recipe."""
    _one_of(table, "file", "recipe")
    if "file" in table.values:
        for path, default in _files(table):
            yield WorkflowSource(_named(table, default, words), path=path)
    else:
        yield _drawn_workflow(table, words)


def _drawn_workflow(table: TomlTable, words: str) -> WorkflowSource:
    recipe = table.text("recipe")
    if recipe in WORKFLOW_RECIPES:
        default_tasks = WORKFLOW_RECIPES[recipe].default_tasks
    else:
        default_tasks = 100
    tasks = cast(int, table.whole("tasks", default_tasks, 1))
    work_s = table.duration_s("work")
    seed = cast(int, table.whole("seed", 0, 0, SEED_MAX))
    given = (_named(table, recipe, words), "", recipe, tasks, work_s, seed)
    parameters = as_texts(table.rest())
    return RecipeWorkflow(*given, parameters) if parameters else WorkflowSource(*given)


def _one_of(table: TomlTable, first: str, second: str) -> None:
    if (first in table.values) == (second in table.values):
        raise table.fault(first, f"either {first} or {second} is needed, and not both")


def _files(table: TomlTable) -> list[tuple[str, str]]:
    """The files that a pattern means, sorted, each with the name that it goes by."""
    pattern = Path(table.text("file")).expanduser()
    folder = Path(table.file.path).absolute().parent
    is_literal = (folder / pattern).exists()  # brackets may be part of a name
    found = [str(pattern)] if is_literal else sorted(glob.glob(str(pattern), root_dir=folder))  # noqa: PTH207  (root_dir)
    if not found:
        raise table.fault("file", f"there is no file {pattern}", f"paths are relative to {folder}")
    if len(found) > 1 and "name" in table.values:
        raise table.fault(
            "name", "several files cannot have one name", "leave it out, or give each file a table"
        )
    return [(str(folder / path), bare_name(path)) for path in found]


def strategies(table: TomlTable, words: str) -> Iterator[Strategy]:
    """A strategy with the parameters given."""
    usual = find_strategy(table.text("strategy"))
    name = _named(table, usual.name, words)
    usual_values = {
        f.name: getattr(usual, f.name) for f in fields(cast(Any, usual)) if f.name != "name"
    }
    given = {
        key: _parameter(table, key, value)
        for key, value in usual_values.items()
        if key in table.values
    }
    table.taken += usual_values
    yield cast(Strategy, replace(cast(Any, usual), **given, name=name))


def _parameter(table: TomlTable, key: str, usual: object) -> object:
    """The value of a strategy's parameter; its usual value says of which kind it is."""
    value = table.take(key)
    if isinstance(usual, bool):
        is_fit = isinstance(value, bool)
        kind = "true or false"
    elif isinstance(usual, int):
        is_fit = is_whole(value) and 0 <= value <= COUNT_MAX
        kind = f"a whole number from 0 to {COUNT_MAX:,}"
    else:
        is_fit = is_number(value) and 0 <= value <= COUNT_MAX
        kind = f"a number from 0 to {COUNT_MAX:,}"
    if not is_fit:
        raise table.fault(key, f"must be {kind}")
    if isinstance(usual, float):
        return float(value)
    return value


def rules(table: TomlTable, _words: str) -> Iterator[BatchRules]:
    """The rules of a batch system."""
    usual = BatchRules()
    found = BatchRules(
        **{f.name: table.text(f.name, getattr(usual, f.name)) for f in fields(usual)}
    )
    ClusterSettings(**asdict(found))  # refuses unknown names while the line is known
    yield found
