"""The documentation site: `make docs`. Warnings are errors there."""

import runpy
from pathlib import Path

from windrow.cli import manual
from windrow.version import __version__

project = "Windrow"
author = "the Windrow authors"
project_copyright = "the Windrow authors, Apache-2.0"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"Windrow {__version__}"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
nitpicky = False
html_search_scorer = str(Path(__file__).with_name("scorer.js"))

# Pages of all keys, made of the reader's tables and of examples.
runpy.run_path(str(Path(__file__).with_name("keys.py")))["write"](Path(__file__).parent / "keys")

# A page for each command, made of its parser.
COMMANDS = Path(__file__).parent / "commands"
COMMANDS.mkdir(exist_ok=True)
pages = {name: manual.as_markdown(manual.page(name)) for name in manual.commands()}
for name, text in {**pages, "index": manual.index()}.items():
    path = COMMANDS / f"{name}.md"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
