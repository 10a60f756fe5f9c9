"""Grid files: what is written is read again, what people write means what it says, and errors name
the line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from tests.lab.grid.test_clusters import grids

from windrow.errors import UserError
from windrow_lab.grid.clusters import Grid
from windrow_lab.grid.file import read_grid, write_grid
from windrow_lab.grid.recipes import generate_grid

TOML = """\
latency_s = 0.05
bandwidth_bytes_s = "12.5MB"
inside = { latency_s = 0.0001, bandwidth_bytes_s = "1.25GB" }

[[clusters]]
name = "ada"
nodes = 8
speed = 2.2
processor = "OPTERON"

[[clusters]]
name = "rtc"
nodes = 16
speed = 1

[[links]]
between = ["ada", "rtc"]
latency_s = 0.002
"""


@pytest.mark.parametrize("suffix", [".toml", ".json", ".json.gz"])
@given(grid=grids())
def test_a_grid_is_read_as_it_was_written(
    suffix: str, grid: Grid, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"grid{suffix}"
    write_grid(grid, path)
    again = read_grid(path)
    assert again.clusters == grid.clusters
    assert (again.latency_s == grid.latency_s).all()
    assert (again.bandwidth_bytes_s == grid.bandwidth_bytes_s).all()
    assert again.reference_speed == grid.reference_speed


def test_a_generated_grid_keeps_its_attributes(tmp_path: Path) -> None:
    grid = generate_grid("four-queues")
    write_grid(grid, tmp_path / "g.toml")
    assert read_grid(tmp_path / "g.toml").clusters == grid.clusters


def test_what_people_write(tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text(TOML)
    grid = read_grid(tmp_path / "g.toml")
    assert [(c.name, c.nodes, c.speed, dict(c.attributes)) for c in grid.clusters] == [
        ("ada", 8, 2.2, {"processor": "OPTERON"}),
        ("rtc", 16, 1.0, {}),
    ]
    assert np.allclose(grid.latency_s, [[0.0001, 0.002], [0.002, 0.0001]])
    assert np.allclose(grid.bandwidth_bytes_s, [[1.25e9, 12.5e6], [12.5e6, 1.25e9]])


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("speed = 2.2", "speed = 'x'", 6, "Expected `float`"),
        ("speed = 1", "speed = 0", 12, "Expected `float` > 0"),
        ("nodes = 16", "nodes = 1.5", 12, "Expected `int`"),
        ("nodes = 16", "nodes = 0", 12, "Expected `int` >= 1"),
        ('name = "rtc"', 'name = ""', 12, "length >= 1"),
        ('name = "rtc"', 'name = "ada"', 12, "is taken"),
        ("processor =", "processor = []\nx =", 6, "must be a number or a text"),
        ('["ada", "rtc"]', '["ada", "rtd"]', 17, "names of two clusters"),
        ("0.05", "[[0.1]]", 1, "2 rows of 2 numbers"),
        ("0.05", "-1", 1, ">= 0.0"),
        ("0.05", "[[0, 1], [1, -1]]", 1, ">= 0.0"),
        ('"12.5MB"', '"fast"', 2, "is not a size"),
        ("inside =", "insides =", 3, "unknown key 'insides'; did you mean inside"),
        ("nodes = 8", "nodes = = 8", 7, "fix the TOML"),
        ('name = "rtc"', "", 11, "missing required field `name`"),
        ('between = ["ada", "rtc"]', "", 16, "names of two clusters"),
    ],
)
def test_an_error_names_the_line(old: str, new: str, line: int, words: str, tmp_path: Path) -> None:
    path = tmp_path / "g.toml"
    path.write_text(TOML.replace(old, new, 1))
    with pytest.raises(UserError) as caught:
        read_grid(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("g.json", "[]", "Expected `object`"),
        ("g.json", '{"clusters": [1]}', "Expected `object`"),
        ("g.json", '{"clusters": []}', "length >= 1"),
        ("g.json", '{"clusters": [}', "fix the JSON"),
        (
            "g.json",
            '{"clusters": [\n{"name": "a", "nodes": 1, "speed": 1},\n{"nodes": 1}]}',
            "json:3: .*`name`",
        ),
        (
            "g.toml",
            "clusters = [\n{name = 'a', nodes = 1, speed = 1},\n{nodes = 1}]",
            "toml:3: .*`name`",
        ),
        ("g.yaml", "x", "ends in .toml or .json"),
    ],
)
def test_what_is_not_a_grid(name: str, text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=words):
        read_grid(tmp_path / name)
