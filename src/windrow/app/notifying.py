"""Word to the user when a run is over: by a command of theirs, or by mail where `sendmail` is.

Law: who is notified has no say in how the run ended; what goes wrong is one line of its messages.
"""

import os
import subprocess
from collections.abc import Mapping
from shutil import which

from windrow.errors import UserError

PATIENCE_S = 60.0
_SENDMAIL = ("sendmail", "/usr/sbin/sendmail", "/usr/lib/sendmail")


def is_address(notify: str) -> bool:
    """Whether it is an address for mail, and no command."""
    name, at, host = notify.partition("@")
    return bool(name and at and host) and not any(c.isspace() or c in "/;|&$<>" for c in notify)


def refuse_bad(notify: str) -> None:
    """UserError if no one could be notified so."""
    if is_address(notify) and _sendmail() is None:
        raise UserError(
            f"mail to {notify} cannot be sent: there is no sendmail on this machine; give --notify "
            "a command instead"
        )


def _sendmail() -> str | None:
    return next((found for name in _SENDMAIL if (found := which(name))), None)


def notify(how: str, said: Mapping[str, str], words: str) -> str:
    """Do it: `said` are variables for a command, `words` a line for a mail. What went wrong, or
    nothing."""
    if is_address(how):
        program = _sendmail()
        if program is None:
            return f"{how} was not notified: there is no sendmail"
        command = [program, "-t"]
        text = f"To: {how}\nSubject: {words}\n\n{words}\n"
    else:
        command = ["sh", "-c", how]
        text = ""
    try:
        done = subprocess.run(
            command,
            input=text,
            env={**os.environ, **said},
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"--notify {how!r}: {error}"
    if done.returncode:
        return f"--notify {how!r} ended with {done.returncode}"
    return ""
