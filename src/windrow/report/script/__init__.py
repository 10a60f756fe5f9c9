"""The script of pages: a few small files of plain JavaScript, assembled into one that a page holds.

The page's policy (Content-Security-Policy) allows this one script by its hash, and nothing else: no
network but the page's own server, no library. Whatever comes from tasks reaches the page as text,
never as markup; a test looks at it.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

PARTS = (
    "words",
    "data",
    "view",
    "pen",
    "lanes",
    "timeline",
    "task",
    "tasks",
    "export",
    "serve",
    "live",
)
"""In the order in which they stand in the page: each may use those before it."""


@cache
def script() -> str:
    """All of it, as one strict function."""
    folder = Path(__file__).parent
    parts = (folder.joinpath(f"{part}.js").read_text(encoding="utf-8") for part in PARTS)
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "\n})();\n"


@cache
def style() -> str:
    """What the parts look like that only a script makes."""
    return Path(__file__).with_name("script.css").read_text(encoding="utf-8")


def policy(text: str) -> str:
    """What a page with this script may do; without one, nothing runs."""
    if text:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        runs = f"'sha256-{digest}'"
    else:
        runs = "'none'"
    return (
        f"default-src 'none'; script-src {runs}; style-src 'unsafe-inline'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'"
    )
