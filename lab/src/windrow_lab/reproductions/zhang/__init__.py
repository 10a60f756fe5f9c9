"""Zhang, Koelbel and Cooper: hybrid submission against individual and giant jobs."""
