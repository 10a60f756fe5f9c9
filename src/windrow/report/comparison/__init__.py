"""The page that compares strategies: words, figures, pictures."""
