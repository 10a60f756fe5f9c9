"""Workflows in WfFormat (JSON)."""
