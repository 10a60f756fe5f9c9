"""Logs in the standard workload format."""
