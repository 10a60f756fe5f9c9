"""What is kept on disk and read again: journals, databases, locks, workflows, and views of them."""
