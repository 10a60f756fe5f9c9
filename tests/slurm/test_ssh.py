"""Commands on another machine through a real sshd: no prompt, no leaks, no noise, and honest words
when it is cut."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator

import pytest
from tests.slurm.far import HOST, Account, missing
from tests.waiting import wait_until

from windrow.errors import UserError
from windrow.queues.command import Answer
from windrow.queues.port import QueueError
from windrow.queues.ssh import Ssh

pytestmark = pytest.mark.slow


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    if reason := missing():
        pytest.skip(f"no second account: {reason}")
    with Account(profile="echo a banner\necho more of it >&2\nexport SCRATCH=/far\n") as made:
        for name, value in made.env.items():
            monkeypatch.setenv(name, value)
        yield made


def test_a_command_runs_there_in_a_login_shell_with_nothing_of_ours(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_SECRET", "ours")
    far = Ssh(HOST, setup="export TOOL='a b'\necho loud")

    def ask(*argv: str, stdin: str = "", **env: str) -> Answer:
        return far(argv, stdin=stdin, env=env, timeout_s=20)

    shown = ask(
        "sh",
        "-c",
        'echo "$SCRATCH|$TOOL|$LC_SECRET|$GIVEN"; cat; echo bad >&2; exit 255',
        stdin="in",
        GIVEN="x y",
    )
    assert shown == Answer(255, "/far|a b||x y\nin", "bad\n")
    assert far.user == account.name
    assert far(["sleep", "9"], stdin="", env={}, timeout_s=0.5).code is None

    def cut() -> None:
        wait_until(lambda: subprocess.run(["pgrep", "-xf", "sleep 8"], check=False).returncode == 0)
        account.cut()

    threading.Thread(target=cut).start()
    assert ask("sleep", "8").code is None  # cut: unknown what became of it
    assert ask("echo", "again").out == "again\n"
    far.close()


def test_a_login_that_needs_a_prompt_says_what_to_type(account: Account) -> None:
    keys, far = account.home / ".ssh" / "authorized_keys", Ssh(HOST)
    kept = keys.read_text()
    keys.write_text("")
    with pytest.raises(QueueError, match=f"west wants a password.* type: ssh -fNM .* {HOST}"):
        far.script("true")
    keys.write_text(kept)
    assert far.script("echo in").out == "in\n"
    keys.write_text("")
    assert far.script("echo still in").out == "still in\n", "the connection is kept"
    account.stop()
    with pytest.raises(QueueError, match=r"west cannot be reached: .*refused"):
        far.script("true")
    with pytest.raises(UserError, match="not the name of a host"):
        Ssh("-oProxyCommand=x")
