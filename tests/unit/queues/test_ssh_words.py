"""What is said of a host that cannot be reached."""

from __future__ import annotations

from windrow.queues.command import Answer
from windrow.queues.ssh import Ssh

CHANGED = """@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@
Host key verification failed.
"""


def test_a_changed_host_key_is_no_question_of_a_password() -> None:
    said = Ssh("west")._unreached(Answer(255, "", CHANGED))
    assert said.startswith("west has another host key than before")
    assert "ssh-keygen -R west" in said
    assert "@" not in said


def test_an_unknown_host_key_needs_a_person() -> None:
    assert "type: ssh -fNM" in Ssh("west")._unreached(
        Answer(255, "", "Host key verification failed.")
    )
