"""Zhang 2009, chapters 3 and 4: schedulers on grids, and selection before scheduling."""
