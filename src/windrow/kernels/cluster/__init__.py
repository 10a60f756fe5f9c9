"""A batch-scheduled cluster as one array: arrivals, policies, plans, estimates."""
