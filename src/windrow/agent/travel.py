"""The agent as one file, for machines that have no Windrow: a zip archive that Python runs as it
is.

Rule 1: the same agent makes the same bytes, and the file is named after them: it is put at a site
once, and one that is in use never changes. Rule 2: it needs Python 3.9 and its standard library.
What newer ones brought and our code uses is given to older ones before anything of ours is loaded
(`_MAIN`); an older Python is refused in one sentence.
"""

from __future__ import annotations

import hashlib
import sys
import zipfile
from functools import cache
from io import BytesIO
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_PARTS = ("agent/**/*.py", "model/*.py", "deletion.py", "errors.py", "files.py", "version.py")
_LONG_AGO = (1980, 1, 1, 0, 0, 0)
_MAIN = """\
import sys
if sys.version_info < (3, 9):
    sys.exit("windrow: %s is Python %d.%d; agents need 3.9 or newer: load one in setup of the site in windrow.toml"
             % (sys.executable, sys.version_info[0], sys.version_info[1]))
import dataclasses, enum, runpy
if sys.version_info < (3, 10):
    plain = dataclasses.dataclass
    dataclasses.dataclass = lambda *given, slots=False, **more: plain(*given, **more)
if sys.version_info < (3, 11):
    class StrEnum(str, enum.Enum):
        __str__ = str.__str__
    enum.StrEnum = StrEnum
module = sys.argv.pop(1)
runpy.run_module("windrow.agent." + module, run_name="__main__", alter_sys=True)
"""  # noqa: E501


@cache
def archive() -> tuple[str, bytes]:
    """The name of the file, and what is in it."""
    texts = {
        path.relative_to(_PACKAGE.parent): path.read_bytes()
        for part in _PARTS
        for path in _PACKAGE.glob(part)
    }
    texts |= {Path("windrow/__init__.py"): b"", Path("__main__.py"): _MAIN.encode()}
    made = BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for path in sorted(texts):
            entry = zipfile.ZipInfo(path.as_posix(), _LONG_AGO)
            file.writestr(entry, texts[path], zipfile.ZIP_DEFLATED)
    content = made.getvalue()
    return f"agent-{hashlib.sha256(content).hexdigest()[:16]}.pyz", content


def here(module: str) -> tuple[str, ...]:
    """What runs a module of the agent with this Python: from the package, or from the file as which
    it travelled."""
    if (file := _PACKAGE.parent).is_file():
        return (sys.executable, "-I", str(file), module)
    # -P: no file in the working folder may stand in for a module
    return (sys.executable, "-P", "-m", f"windrow.agent.{module}")
