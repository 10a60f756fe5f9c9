"""Batch queues: one port, several implementations."""
