"""Campaign files: what they mean, against campaigns built by hand; and what is wrong with them, by
file and line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.app.strategies import STRATEGIES
from windrow.errors import InputError, UserError
from windrow.formats import write_log, write_workflow
from windrow.model import Task, Workflow
from windrow.model.failures import NO_FAILURES, Failures
from windrow.recipes import generate_log, generate_workflow
from windrow.recipes.workflows.catalog import WORKFLOW_RECIPES
from windrow.sim.settings import PRIORITIES
from windrow.strategies import Glume, OneJob, Zhang
from windrow_lab.campaign import EXAMPLE
from windrow_lab.campaign.campaign import BatchRules, Campaign
from windrow_lab.campaign.entries import RecipeWorkflow
from windrow_lab.campaign.file import read_campaign
from windrow_lab.campaign.shards import Shard, deal, parse_shard, run_sweep, unfinished_shards
from windrow_lab.campaign.sources import LogSource, WorkflowSource
from windrow_lab.campaign.store import ChunkStore
from windrow_lab.campaign.summary import summarize
from windrow_lab.campaign.sweep import Sweep, read_results
from windrow_lab.campaign.workers import run_campaigns

SMALL = """\
name = "small"
submit = ["1d", 100000]
caps = 4
strategies = ["one-job", "glume"]

[[logs]]
model = "lublin"
nodes = 16
days = 3
seed = 3

[[workflows]]
recipe = "fork-join"
tasks = [12, 20]
work = "5h"
"""


def written(folder: Path, text: str, name: str = "c.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def answers(table: pa.Table) -> pa.Table:
    return table.drop_columns(["wall_s"])


def test_a_file_means_the_campaign_built_by_hand(tmp_path: Path) -> None:
    (part,) = read_campaign(written(tmp_path, SMALL)).parts
    assert part.campaign == Campaign(
        "small",
        logs=(LogSource("lublin", model="lublin", seed=3, days=3, nodes=16),),
        workflows=tuple(
            WorkflowSource(f"fork-join tasks={n}", recipe="fork-join", tasks=n, work_s=18_000.0)
            for n in (12, 20)
        ),
        submit_s=(86_400, 100_000),
        strategies=(OneJob(), Glume()),
        caps=(4,),
        terms=(("margin", 1.1),),
    )


def test_the_example_has_every_combination(tmp_path: Path) -> None:
    """Per margin: 2 logs x 2 requests x 2 policies x 1 workflow x 3 times x 3 strategies, with 1 +
    2 seeds."""
    sweep = read_campaign(written(tmp_path, EXAMPLE.read_text(encoding="utf-8")))
    assert [(p.margin, p.noise, len(p.campaign.seeds)) for p in sweep.parts] == [
        (1.1, 0.0, 1),
        (1.1, 0.3, 2),
        (1.5, 0.0, 1),
        (1.5, 0.3, 2),
    ]
    assert sweep.trials == 2 * (2 * 2 * 2 * 3 * 3) * (1 + 2)
    first = sweep.parts[0].campaign
    assert [log.name for log in first.logs] == ["lublin load=0.7", "lublin load=0.9"]
    assert first.submit_s == (86_400, 172_800, 259_200)
    assert first.strategies == (
        OneJob(),
        Glume(0.0, name="glume beat=0.0"),
        Glume(0.1, name="glume beat=0.1"),
    )
    assert first.rules == (BatchRules("conservative"), BatchRules("easy"))


def test_paths_count_from_the_file_and_patterns_mean_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in" / "w[1]").mkdir(parents=True)
    write_log(generate_log("lublin", seed=4, days=3, nodes=24), tmp_path / "in" / "log.swf.gz")
    for name, tasks in (("b", 12), ("a", 15)):
        write_workflow(
            generate_workflow("fork-join", tasks=tasks), tmp_path / "in" / "w[1]" / f"{name}.json"
        )
    text = 'submit = 0\nlogs = ["log.swf.gz"]\n[[workflows]]\nfile = "w[[]1]/*.json"\n'
    path = written(tmp_path / "in", text + '[[workflows]]\nfile = "w[1]/a.json"\nname = "again"\n')
    monkeypatch.chdir(tmp_path)
    campaign = read_campaign(path.relative_to(tmp_path)).parts[0].campaign
    assert [log.name for log in campaign.logs] == ["log"]
    assert [(w.name, w.tasks) for w in campaign.workflows] == [("a", 15), ("b", 12), ("again", 15)]
    assert campaign.strategies == tuple(STRATEGIES.values())
    assert campaign.logs[0].load("actual").machine_nodes == 24


def test_parameters_reach_recipes_models_strategies_and_rules(tmp_path: Path) -> None:
    shape = WORKFLOW_RECIPES["random"].parameters[0].name
    priority = next(name for name in PRIORITIES if name != "arrival")
    text = f"""
submit = ["1h"]
policies = [{{ policy = "easy", priority = "{priority}" }}]
strategies = [{{ strategy = "zhang", sizing = false, name = "print" }}, "zhang"]
logs = [{{ model = "lublin", days = 1, load = 0.5, users = 9, name = "quiet" }}]
workflows = [{{ recipe = "random", tasks = 30, {shape} = 3 }}]
"""
    campaign = read_campaign(written(tmp_path, text)).parts[0].campaign
    assert campaign.rules == (BatchRules("easy", priority),)
    assert campaign.strategies == (Zhang(sizing=False, name="print"), Zhang())
    assert campaign.logs[0].parameters == (("load", "0.5"), ("users", "9"))
    (workflow,) = campaign.workflows
    assert isinstance(workflow, RecipeWorkflow)
    assert workflow.parameters == ((shape, "3"),)
    drawn, wanted = workflow.load(), generate_workflow("random", tasks=30, parameters={shape: "3"})
    assert list(drawn) == list(wanted)
    assert replace(workflow, parameters=((shape, "4"),)).content != workflow.content


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("caps = 4", "caps = 0", 3, "caps: must be whole numbers from 1 to 1,000,000"),
        ("caps = 4", "caps = []", 3, "caps: is an empty list"),
        ("caps = 4", "cap = 4", 3, "unknown key 'cap'; did you mean caps?"),
        ("caps = 4", "caps = = 4", 3, "not TOML: Invalid value"),
        ("caps = 4", "margins = [0.9]", 3, "margins: must be numbers from 1 to 100"),
        ("caps = 4", "noise = [0, nan]", 3, "noise: must be numbers from 0 to 5"),
        ("caps = 4", "noise = [0.1, 0.1]", 3, "noise: a value occurs twice"),
        ("caps = 4", "seeds = [1, 2]", 3, "several seeds change nothing without noise"),
        ("caps = 4", 'requests = ["exact"]', 3, "unknown kind of requests 'exact'"),
        ("caps = 4", 'policies = ["eazy"]', 3, "unknown policy 'eazy'"),
        ('"small"', '"a/b"', 1, "cannot be the name of a table's file"),
        ('["1d", 100000]', '["1x"]', 2, "submit: '1x' is not a duration"),
        (
            '["1d", 100000]',
            '["90d"]',
            2,
            "submit: 90.0 d is after the end of log lublin, whose last job is submitted",
        ),
        (
            '["1d", 100000]',
            '{ from = "2d", to = "1d", every = "1h" }',
            2,
            "from must not be after to",
        ),
        ('["1d", 100000]', '{ from = "2d" }', 2, "from, to and every are needed all three"),
        ('["1d", 100000]', "[]", 2, "submit: is an empty list"),
        ('submit = ["1d", 100000]', "", None, "submit: it is missing"),
        ('"glume"]', '"glum"]', 4, "unknown strategy 'glum'; did you mean glume?"),
        (
            '"glume"]',
            '{ strategy = "glume", beat = "a" }]',
            4,
            "beat of strategies: must be a number",
        ),
        (
            '"glume"]',
            '{ strategy = "glume", bet = 1 }]',
            4,
            "unknown key 'bet'; did you mean beat?",
        ),
        ('"glume"]', '"one-job"]', 4, "one-job occurs twice"),
        (
            "caps = 4",
            'failures = ["none", "nodes=x"]',
            3,
            "failures: 'nodes=x': 'x' is not a duration",
        ),
        (
            "nodes = 16",
            "nodes = 1.5",
            8,
            "nodes of logs: must be a whole number from 1 to 10,000,000, not 1.5",
        ),
        ("nodes = 16", "node = 16", 6, "model lublin has no parameter node"),
        ('model = "lublin"', 'model = "lubin"', 6, "there is no log model 'lubin'"),
        (
            'model = "lublin"',
            'file = "no.swf"',
            7,
            "there is no file no.swf; paths are relative to",
        ),
        (
            'model = "lublin"',
            'model = "lublin"\nfile = "x"',
            8,
            "either file or model is needed, and not both",
        ),
        ('recipe = "fork-join"', "recipe = 3", 13, "recipe of workflows: must be a string, not 3"),
        ("tasks = [12, 20]", "tasks = [12, 2]", 12, "fork-join needs at least"),
        ("tasks = [12, 20]", "tasks = []", 14, "tasks of workflows: is an empty list"),
        (
            'work = "5h"',
            "work = true",
            15,
            'work of workflows: must be seconds or a string like "4h"',
        ),
        ('work = "5h"', 'name = "a/b"', 15, "cannot be part of a file's name"),
    ],
)
def test_a_fault_is_told_with_file_and_line(
    tmp_path: Path, old: str, new: str, line: int | None, words: str
) -> None:
    assert SMALL.count(old) == 1
    path = written(tmp_path, SMALL.replace(old, new))
    with pytest.raises(InputError) as caught:
        read_campaign(path)
    assert words in str(caught.value)
    assert (caught.value.file, caught.value.line) == (str(path), line)


def test_failures_are_an_axis_and_have_seeds(tmp_path: Path) -> None:
    text = SMALL.replace(
        "caps = 4", 'caps = 4\nseeds = [1, 2]\nfailures = ["none", "nodes=3d,repair=1h"]'
    )
    without, with_some = read_campaign(written(tmp_path, text)).parts
    assert (without.failures, without.campaign.failures, without.campaign.seeds) == (
        "none",
        NO_FAILURES,
        (1,),
    )
    assert with_some.failures == "nodes=3d,repair=1h"
    assert (with_some.campaign.failures, with_some.campaign.seeds) == (
        Failures(3 * 86400, 3600),
        (1, 2),
    )
    assert without.campaign.chunks()[0].digest() != with_some.campaign.chunks()[0].digest()


def test_a_failure_log_is_beside_the_file_and_needs_no_seeds(tmp_path: Path) -> None:
    (tmp_path / "f.csv").write_text("1d,3,4h\n")
    text = SMALL.replace("caps = 4", 'caps = 4\nfailures = ["log=f.csv"]')
    campaign = read_campaign(written(tmp_path, text)).parts[0].campaign
    assert campaign.failures == Failures(log="f.csv", recorded=((86400, 3, 100800),))
    with pytest.raises(InputError, match="several seeds change nothing"):
        read_campaign(written(tmp_path, text.replace("caps = 4", "caps = 4\nseeds = [1, 2]")))
    (tmp_path / "f.csv").write_text("1d,16,4h\n")
    with pytest.raises(InputError, match=r"c\.toml:4: failures: f\.csv has a node 16"):
        read_campaign(written(tmp_path, text))


def test_a_fault_in_a_log_is_told_at_the_log(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text("; MaxProcs: 4\n1 2 3\n")
    with pytest.raises(InputError, match=r"log\.swf:2: 3 columns"):
        read_campaign(written(tmp_path, 'submit = 0\nlogs = "log.swf"\nworkflows = []\n'))


def test_a_workflow_that_fits_on_no_node_is_told_before_anything_runs(tmp_path: Path) -> None:
    write_workflow(
        Workflow.from_tasks("wide", [Task("large", 60, cores=4)]), tmp_path / "wide.json"
    )
    text = SMALL + '\n[[workflows]]\nfile = "wide.json"\n'
    with pytest.raises(InputError, match=r"c\.toml:17: workflows: task large needs"):
        read_campaign(written(tmp_path, text))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    text = SMALL.replace(
        "caps = 4", "caps = [2, 4]\nmargins = [1.1, 1.5]\nnoise = [0, 0.2]\nseeds = [1, 2]"
    )
    return read_campaign(written(tmp_path_factory.mktemp("file"), text))


@pytest.fixture(scope="module")
def whole(sweep: Sweep, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    return run_sweep(sweep, tmp_path_factory.mktemp("whole"), workers=1).rows


@pytest.mark.slow
def test_the_table_is_that_of_the_campaigns_one_by_one(
    sweep: Sweep, whole: pa.Table, tmp_path: Path
) -> None:
    """2 margins x (1 + 2 seeds) x 2 workflows x 2 caps x 2 times x 2 strategies."""
    assert len(whole) == sweep.trials == 2 * 3 * 16
    for part in sweep.parts[1:3]:
        mine = run_campaigns([part.campaign], tmp_path / f"{part.margin}-{part.noise}", workers=1)[
            0
        ]
        mask = pa.compute.and_(
            pa.compute.equal(whole.column("margin"), part.margin),
            pa.compute.equal(whole.column("noise"), part.noise),
        )
        theirs = whole.filter(mask).drop_columns(["margin", "noise", "failures"])
        assert answers(theirs).equals(answers(mine))


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3, 40])
def test_shards_in_any_number_and_order_give_the_same_table(
    count: int, sweep: Sweep, whole: pa.Table, tmp_path: Path
) -> None:
    store = ChunkStore(tmp_path)
    for index in reversed(range(1, count + 1)):
        left = unfinished_shards(sweep, store, count)
        assert [k for k in left if k >= index] == [k for k in [index] if k in left]
        results = run_sweep(sweep, tmp_path, shard=Shard(index, count), workers=1)
    assert unfinished_shards(sweep, store, count) == []
    assert answers(results.rows).equals(answers(whole))
    assert results.table_path is not None
    assert answers(read_results(tmp_path).rows).equals(answers(whole))


@given(st.integers(1, 30))
def test_dealing_loses_nothing_and_is_fair(sweep: Sweep, count: int) -> None:
    chunks = sweep.chunks()
    shards = deal(chunks, count)
    assert len(shards) == count
    assert sorted(c.digest() for shard in shards for c in shard) == sorted(
        c.digest() for c in chunks
    )
    weights = [sum(c.weight for c in shard) for shard in shards]
    assert max(weights) - min(weights) <= max(c.weight for c in chunks)


def test_an_unfinished_sweep_says_how_far_it_is(sweep: Sweep, tmp_path: Path) -> None:
    results = run_sweep(sweep, tmp_path, shard=Shard(2, 3), workers=1)
    chunks = deal(sweep.chunks(), 3)[1]
    assert 0 < len(results.rows) == sum(c.trials for c in chunks) < results.trials == sweep.trials
    assert results.table_path is None
    assert not (tmp_path / "small.parquet").exists()


def test_shards_keep_out_of_each_others_way(sweep: Sweep, tmp_path: Path) -> None:
    part = tmp_path / "chunks" / ".another.parquet.1234.part"
    with (
        ChunkStore(tmp_path).locked(),
        pytest.raises(UserError, match="shard 1/3 is already running there"),
    ):
        run_sweep(sweep, tmp_path, shard=Shard(1, 3), workers=1)
    part.write_bytes(b"another shard is writing this")
    run_sweep(sweep, tmp_path, shard=Shard(1, 30), workers=1)
    assert part.exists()


def test_a_folder_belongs_to_one_campaign(sweep: Sweep, tmp_path: Path) -> None:
    run_sweep(sweep, tmp_path, shard=Shard(30, 30), workers=1)
    with pytest.raises(UserError, match="it contains campaign 'small', not 'other'"):
        run_sweep(replace(sweep, name="other"), tmp_path, workers=1)


def test_means_are_those_of_the_rows(whole: pa.Table) -> None:
    rows = whole.to_pylist()
    found = summarize(whole, ["cap", "noise"])
    assert [(s["cap"], s["noise"]) for s in found] == [
        (c, n) for c in (2, 4) for n in (0.0, 0.2) for _ in range(2)
    ]
    for summary in found:
        mine = [r for r in rows if all(r[k] == summary[k] for k in ("cap", "noise", "strategy"))]
        assert summary["runs"] == len(mine) > 0
        assert summary["makespan_s_mean"] == pytest.approx(
            sum(r["makespan_s"] for r in mine) / len(mine)
        )
        assert summary["allocated_node_h_mean"] == pytest.approx(
            sum(r["allocated_node_s"] for r in mine) / len(mine) / 3600
        )
        assert summary["jobs_mean"] == pytest.approx(sum(r["jobs"] for r in mine) / len(mine))


def test_failed_trials_are_counted_and_left_out_of_the_means(whole: pa.Table) -> None:
    rows = whole.to_pylist()
    figures = dict.fromkeys(("makespan_s", "allocated_node_s", "jobs"))
    glume = [k for k, row in enumerate(rows) if row["strategy"] == "glume"]
    for k in glume[1:]:
        rows[k] |= figures | {"error": "AssertionError: no"}
    summary = next(
        s for s in summarize(pa.Table.from_pylist(rows, whole.schema)) if s["strategy"] == "glume"
    )
    assert (summary["runs"], summary["failed"]) == (len(glume), len(glume) - 1)
    assert summary["makespan_s_mean"] == rows[glume[0]]["makespan_s"]


@pytest.mark.parametrize("text", ["", "0/3", "4/3", "1", "a/b", "1/0", "-1/3", "1/3/4"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="is not a shard"):
        parse_shard(text)
