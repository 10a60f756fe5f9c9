"""Scheduling a workflow on many clusters whose processors are free: the schedulers of Zhang's
thesis, and others."""
