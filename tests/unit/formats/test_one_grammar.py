"""Sizes and durations mean the same in workflow files, in windrow.toml and on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.cli.arguments import duration_s, size_bytes
from windrow.cli.main import main
from windrow.errors import InputError
from windrow.formats import read_runnable
from windrow.model.size import parse_size

NUMBERS = st.decimals("0.01", "999", places=2).map(str)


def read(folder: Path, *, size: str = "1B", runtime: str = "1s") -> tuple[int, float]:
    path = folder / "w.yaml"
    path.write_text(
        f"tasks:\n  - {{id: a, command: [x], outputs: {{o: {size}}}, runtime: {runtime}}}\n"
    )
    workflow = read_runnable(path).workflow
    return workflow.files[0].size_bytes, float(workflow.runtime_s[0])


@given(
    number=NUMBERS, unit=st.sampled_from(["B", "k", "K", "G", "GB", "gb", "GiB", "MiB", "T", "t"])
)
def test_a_size_means_the_same_everywhere(
    number: str, unit: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    size, _ = read(tmp_path_factory.mktemp("w"), size=f"{number}{unit}")
    assert size == size_bytes(f"{number}{unit}")


@given(number=NUMBERS, unit=st.sampled_from(["s", "m", "H", "d", "D", "w"]))
def test_a_duration_means_the_same_everywhere(
    number: str, unit: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    _, runtime_s = read(tmp_path_factory.mktemp("w"), runtime=f"{number}{unit}")
    assert runtime_s == duration_s(f"{number}{unit}")


@pytest.mark.parametrize(
    ("text", "size"), [("4G", 4 << 30), ("4GB", 4 * 10**9), ("4GiB", 4 << 30), ("7", 7)]
)
def test_what_the_units_are(text: str, size: int) -> None:
    assert parse_size(text) == size


def test_a_file_of_4g_fits_into_4g(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("g.yaml").write_text(
        'tasks:\n  - {id: a, command: "true", outputs: {a: {size: 4G}}, runtime: 1s}\n'
    )
    assert main(["run", "-n", "--space", "4G", "g.yaml"]) == 0
    assert main(["run", "-n", "--space", "4GB", "g.yaml"]) == 2


def test_in_files_a_size_needs_its_unit(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="write a size with its unit"):
        read(tmp_path, size="4096")
