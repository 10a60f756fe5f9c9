"""The page of a log replayed under one or several policies: figures, load over time, waits."""
