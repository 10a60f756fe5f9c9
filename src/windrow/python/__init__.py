"""Workflows and calls that a Python program makes: `Flow` and `Executor`."""
