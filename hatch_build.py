"""What the wheel has beside the code: a man page for each command, made of its parser."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Manual(BuildHookInterface):  # type: ignore[type-arg]  (of whatever configuration)
    """Called while a wheel is made; one that is installed in place has none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the pages, and name them as files of the wheel."""
        if self.target_name != "wheel" or version == "editable":
            return
        sys.path.insert(0, str(Path(self.root, "src")))
        from windrow.cli.manual import man_pages  # noqa: PLC0415  (it is not there before)

        self._folder = tempfile.TemporaryDirectory(prefix="windrow-man-")
        for name, text in man_pages().items():
            path = Path(self._folder.name, name)
            path.write_text(text, encoding="utf-8")
            build_data["shared_data"][str(path)] = f"share/man/man1/{name}"
