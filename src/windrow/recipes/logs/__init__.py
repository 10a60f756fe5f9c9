"""Generators of batch logs."""
