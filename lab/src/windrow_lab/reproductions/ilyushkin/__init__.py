"""Ilyushkin and others: reservations for workflows that share a pool."""
