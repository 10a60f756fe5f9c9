"""The benchmark of Windrow: `python bench/bench.py`. Nothing of it is installed."""
