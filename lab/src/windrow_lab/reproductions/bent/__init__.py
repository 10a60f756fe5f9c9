"""Data-driven batch scheduling (J. Bent, 2005): roles of data, five storage allocations,
BAD-Sim."""
