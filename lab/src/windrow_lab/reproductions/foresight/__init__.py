"""Our own claims about `foresight`, put to the test."""
