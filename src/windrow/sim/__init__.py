"""A batch-scheduled cluster in virtual time."""
