"""Environment files: what they say, and one message for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.errors import UserError
from windrow_lab.storage.allocations import Environment
from windrow_lab.storage.environment_file import read_environment

GOOD = """\
nodes = 50
disk = "5GB"
memory = "1GB"
node_mtbf = "30d"
remote = { bandwidth_bytes_s = "1MB", latency_s = 0.05 }
local = { bandwidth_bytes_s = 12e6 }
"""


def test_what_a_file_says(tmp_path: Path) -> None:
    path = tmp_path / "here.toml"
    path.write_text(GOOD)
    told = Environment(50, 250_000_000_000, 1e6, 12e6, 50 / 30 / 86400, 0.05, 1_000_000_000)
    assert read_environment(path) == told
    assert read_environment(path, 7).storage == 7


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("nodes = 50", "nodes = 0", r"here.toml:1: .*>= 1.*nodes"),
        ("nodes = 50\n", "", r"missing required field `nodes`"),
        ("5GB", "5XB", r"here.toml:2: .*'5XB' is not a size"),
        ('disk = "5GB"\n', "", r"here.toml:1: how much space is there"),
        ("30d", "often", r"'often' is not a duration"),
        ("30d", "0", r"here.toml:4: a node cannot fail all the time"),
        ("12e6", "0", r"here.toml:6: .*> 0"),
        (
            "latency_s",
            "latency",
            r"unknown key 'latency'; did you mean latency_s\? known: bandwidth_bytes_s, latency_s",
        ),
        ("local = {", "local = [", r"here.toml:6: "),
        ("local = {", "local = 3 #", r"here.toml:6: .*Expected `object`"),
    ],
)
def test_one_message_for_each_mistake(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "here.toml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(UserError, match=says) as found:
        read_environment(path)
    assert "\n" not in str(found.value)
    assert found.value.exit_code == 2
