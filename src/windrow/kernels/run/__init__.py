"""A workflow that runs on such a cluster."""
