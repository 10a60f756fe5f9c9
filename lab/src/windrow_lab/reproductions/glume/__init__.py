"""GLUME: grouping levels of a workflow by estimated makespan (thesis)."""
