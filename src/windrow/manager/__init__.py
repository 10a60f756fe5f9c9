"""Runs one workflow: events in, actions out."""
