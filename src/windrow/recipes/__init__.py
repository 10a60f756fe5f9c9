"""Seeded generators: workflows of known applications and shapes, and batch logs."""

from windrow.recipes.logs import LOG_MODELS, generate_log
from windrow.recipes.recipe import Parameter, Recipe
from windrow.recipes.workflows import WORKFLOW_RECIPES, generate_workflow

__all__ = [
    "LOG_MODELS",
    "WORKFLOW_RECIPES",
    "Parameter",
    "Recipe",
    "generate_log",
    "generate_workflow",
]
