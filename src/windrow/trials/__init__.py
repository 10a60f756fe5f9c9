"""Experiments: workflows, strategies and logs, tried in simulation."""
