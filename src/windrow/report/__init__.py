"""Pages for people: self-contained HTML with pictures, no script, nothing fetched from anywhere."""

from windrow.report.simulation import simulation_page
from windrow.report.workflow import workflow_page

__all__ = ["simulation_page", "workflow_page"]
