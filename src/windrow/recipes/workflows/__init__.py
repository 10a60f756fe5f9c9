"""Generators of workflows, one file for each application or shape."""
