"""The queue that comes with Windrow: this machine, or a small cluster played on it."""
