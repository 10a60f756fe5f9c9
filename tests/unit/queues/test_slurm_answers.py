"""Listings that runs of one user share: who uses which answer, and when each asks for itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from windrow.queues.command import Answer
from windrow.queues.slurm.answers import FRESH_S, Shared, runtime_folder

LISTING = ["squeue", "--local", "--me"]


class Site:
    """Answers with how often it was asked, at a time of its own."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.asked: list[list[str]] = []
        self.code: int | None = 0

    def run(
        self, argv: Sequence[str], *, stdin: str, env: Mapping[str, str], timeout_s: float
    ) -> Answer:
        del stdin, env, timeout_s
        self.asked.append(list(argv))
        return Answer(self.code, f"answer {len(self.asked)}", "")

    def user(self, folder: Path) -> Shared:
        return Shared(folder, self.run, lambda: self.now_s)


def ask(run: Shared, argv: Sequence[str], conf: str = "a") -> str:
    return run(argv, stdin="", env={"SLURM_CONF": conf}, timeout_s=1.0).out


def test_a_listing_is_asked_for_once_by_all_runs_of_a_user(tmp_path: Path) -> None:
    site = Site()
    runs = [site.user(tmp_path) for _ in range(10)]
    assert {ask(run, LISTING) for run in runs} == {"answer 1"}
    assert ask(runs[0], [*LISTING, "--array"]) == "answer 2"
    assert ask(runs[0], LISTING, conf="b") == "answer 3"
    site.now_s += FRESH_S
    assert ask(runs[1], LISTING) == "answer 4"
    site.now_s -= 1  # the clock was set back
    assert ask(runs[1], LISTING) == "answer 5"


def test_who_has_changed_something_asks_again(tmp_path: Path) -> None:
    site = Site()
    one, other = site.user(tmp_path), site.user(tmp_path)
    ask(one, LISTING)
    for argv in (["sbatch", "--test-only"], ["scontrol", "-o", "show", "node"], ["sacct"]):
        ask(one, argv)
        assert ask(one, LISTING) == "answer 1"
    for argv in (["sbatch", "job"], ["scancel", "7"], ["scontrol", "hold", "7"]):
        site.now_s += 0.5
        ask(one, argv)
        assert ask(one, LISTING) == f"answer {len(site.asked)}"
    newest = len(site.asked)
    site.now_s += 0.5
    assert ask(other, LISTING) == f"answer {newest}"
    other.forget()
    assert ask(other, LISTING) == f"answer {newest + 1}"


def test_what_failed_or_cannot_be_read_is_asked_for(tmp_path: Path) -> None:
    site = Site()
    run = site.user(tmp_path)
    site.code = 1
    ask(run, LISTING)
    site.code = 0
    assert ask(run, LISTING) == "answer 2"
    (file,) = tmp_path.iterdir()
    for content in (b"", b"{}", b"\xff", b'{"argv":["squeue"],"asked_s":1000,"out":"","err":""}'):
        file.write_bytes(content)
        assert ask(run, LISTING) == f"answer {len(site.asked)}"
    gone = site.user(tmp_path / "gone")
    assert ask(gone, LISTING) == f"answer {len(site.asked)}"


def test_the_folder_is_the_users_own(tmp_path: Path) -> None:
    assert runtime_folder({"XDG_RUNTIME_DIR": str(tmp_path)}) == tmp_path
    assert runtime_folder({"XDG_RUNTIME_DIR": str(tmp_path / "gone")}) is None
    assert runtime_folder({"XDG_RUNTIME_DIR": "relative"}) is None
