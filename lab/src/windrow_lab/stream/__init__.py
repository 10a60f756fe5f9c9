"""Experiments with streams of workflows that share a pool."""
