"""What commands do to files: tracing them, and the figures, roles and verdicts that come of it."""
