"""Workflows on the free processors of many clusters: where each task goes, and when it starts."""
