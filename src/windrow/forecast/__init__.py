"""Forecasts: when a job would start, and how long tasks run."""
