"""The digest of a chunk's code: it follows what makes the rows, and nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from windrow.strategies import Glume, Strategy
from windrow_lab.campaign import code
from windrow_lab.campaign.campaign import Campaign, Chunk
from windrow_lab.campaign.file import read_campaign
from windrow_lab.campaign.sources import LogSource, WorkflowSource
from windrow_lab.reproductions.foresight.oracle import Oracle
from windrow_lab.reproductions.glume.log import ThesisLog

SWF = "; MaxProcs: 8\n" + "\n".join(
    f"{k} {60 * k} 5 500 4 -1 -1 4 600 -1 1 1 1 1 1 1 -1 -1" for k in range(1, 100)
)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Digests are kept for the life of a process; here the source changes under them."""
    code.code_digest.cache_clear()
    yield
    code.code_digest.cache_clear()


def chunk(log: LogSource, strategy: Strategy = Glume()) -> Chunk:  # noqa: B008  (a frozen value)
    workflow = WorkflowSource("w", recipe="fork-join", tasks=8, seed=1)
    [only] = Campaign("c", (log,), (workflow,), (600,), (strategy,)).chunks()
    return only


@pytest.fixture
def chunks(tmp_path: Path) -> dict[str, Chunk]:
    path = tmp_path / "few.swf"
    path.write_text(SWF)
    plain = LogSource("few", path=str(path))
    return {
        "plain": chunk(plain),
        "thesis": chunk(ThesisLog("few", path=str(path))),
        "oracle": chunk(plain, Oracle()),
    }


@pytest.mark.parametrize(
    ("module", "changed"),
    [
        ("windrow.pool.core", set()),
        ("windrow.cli.main", set()),
        ("windrow_lab.reproductions.glume.claims", set()),
        ("windrow_lab.reproductions.glume.log", {"thesis"}),
        ("windrow_lab.reproductions.foresight.oracle", {"oracle"}),
        ("windrow_lab.campaign.sources", {"plain", "thesis", "oracle"}),
        ("windrow.kernels.run.trial", {"plain", "thesis", "oracle"}),
        ("windrow.strategies.glume", {"plain", "thesis", "oracle"}),
    ],
)
def test_a_module_changes_the_digests_of_what_it_makes(
    module: str,
    changed: set[str],
    chunks: dict[str, Chunk],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    before = {name: one.digest() for name, one in chunks.items()}
    source = code._source
    edited = tmp_path / "edited.py"
    edited.write_bytes(source(module).read_bytes() + b"\n# changed\n")
    monkeypatch.setattr(code, "_source", lambda name: edited if name == module else source(name))
    code.code_digest.cache_clear()
    assert {name for name, one in chunks.items() if one.digest() != before[name]} == changed


def test_the_table_of_a_module_counts_as_its_code(
    chunks: dict[str, Chunk], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module, source, before = (
        "windrow.recipes.workflows.catalog",
        code._source,
        chunks["plain"].digest(),
    )
    copy = tmp_path / "catalog.py"
    copy.write_bytes(source(module).read_bytes())
    copy.with_suffix(".toml").write_bytes(source(module).with_suffix(".toml").read_bytes())
    monkeypatch.setattr(code, "_source", lambda name: copy if name == module else source(name))
    code.code_digest.cache_clear()
    assert chunks["plain"].digest() == before
    copy.with_suffix(".toml").write_text("# changed")
    code.code_digest.cache_clear()
    assert chunks["plain"].digest() != before


def test_a_campaign_file_replays_a_log_as_in_the_thesis(tmp_path: Path) -> None:
    (tmp_path / "few.swf").write_text(SWF)
    tables = (
        '[[logs]]\nfile = "few.swf"\nas_thesis = true\n[[workflows]]\nrecipe = "fork-join"\n'
        "tasks = 8\n"
    )
    (tmp_path / "c.toml").write_text(f'submit = [600]\nstrategies = ["glume"]\n{tables}')
    [part] = read_campaign(tmp_path / "c.toml").parts
    assert [type(log) for log in part.campaign.logs] == [ThesisLog]


@pytest.mark.slow
def test_imports_by_their_look_are_those_of_the_parser() -> None:
    found = [
        (package, source)
        for package in ("windrow", "windrow_lab")
        for source in sorted(code.root(package).rglob("*.py"))
    ]
    assert len({package for package, _ in found}) == 2
    for package, source in found:
        parts = source.relative_to(code.root(package)).with_suffix("").parts
        name = ".".join((package, *parts)).removesuffix(".__init__")
        named: set[str] = set()
        for node in ast.walk(ast.parse(source.read_bytes())):
            if isinstance(node, ast.Import):
                named.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                named.update(
                    [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                )
        assert {one for one in named if one.split(".")[0] in ("windrow", "windrow_lab")} <= set(
            code._imports(name)
        ), name
