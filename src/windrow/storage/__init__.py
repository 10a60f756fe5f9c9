"""Files take space: which role each has, how much there is at a time, and what may start within a
limit.

Pure, and standard library only at run time: the same code decides on compute nodes, in estimates
and in simulation.
"""
