"""Zhang's thesis, chapter 6: ten ways to run workflows on clusters that fail."""
