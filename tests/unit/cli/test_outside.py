"""What root is told of outputs outside of the folder of a workflow file."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.cli.main import main

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("uid", [0, 1000])
def test_root_is_told_what_is_written_outside(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], uid: int
) -> None:
    (home / "p").mkdir()
    (home / "other").mkdir()
    (home / "p/link").symlink_to("../other")
    monkeypatch.chdir(home / "p")
    monkeypatch.setattr("windrow.app.execute.os.geteuid", lambda: uid)
    Path("w.yaml").write_text(
        "name: w\ndefaults: {runtime: 1s}\ntasks:\n"
        "  - {id: a, command: 'true', outputs: [../x, link/y], outside: true}\n"
        "  - {id: b, command: 'true', outputs: z}\n"
    )
    assert main(["run", "-n", "w.yaml"]) == 0
    told = f"as root, this run writes outside of {home}/p: {home}/x, {home}/p/link/y"
    said = " ".join("".join(capsys.readouterr()).split())
    assert (told in said) == (uid == 0), said
