"""Seeded generators: workflows of known applications and shapes, batch logs, and grids."""

from windrow.recipes.grids import GRID_RECIPES, generate_grid
from windrow.recipes.logs.models import LOG_MODELS, generate_log
from windrow.recipes.workflows.catalog import WORKFLOW_RECIPES, generate_workflow
from windrow.recipes.workflows.recipe import Recipe

__all__ = [
    "GRID_RECIPES", "LOG_MODELS", "WORKFLOW_RECIPES", "Recipe", "generate_grid", "generate_log",
    "generate_workflow",
]  # fmt: skip
