"""The documentation site: `make docs`. Warnings are errors there."""

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
