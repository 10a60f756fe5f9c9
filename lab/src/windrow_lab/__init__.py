"""Studies of scheduling: what researchers ask of Windrow, and users of a cluster do not need.

Rule: it may import all of `windrow`, which knows of it only through entry points (`commands`).
"""
