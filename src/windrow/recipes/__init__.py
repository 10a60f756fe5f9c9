"""Seeded generators: workflows of known applications and shapes, and batch logs."""

from windrow.recipes.logs.models import LOG_MODELS, generate_log
from windrow.recipes.workflows.catalog import WORKFLOW_RECIPES, generate_workflow
from windrow.recipes.workflows.recipe import Recipe

__all__ = [
    "LOG_MODELS",
    "WORKFLOW_RECIPES",
    "Recipe",
    "generate_log",
    "generate_workflow",
]
