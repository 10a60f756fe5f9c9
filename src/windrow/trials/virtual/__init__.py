"""Runs in virtual time: the manager that ships over a simulated queue, simulated agents and a disk,
with faults.

`world` holds the time and everything but the manager; `agents` are in it, on a `disk`; `faults` are
values drawn from a seed; `shell` hires managers until a run is over; `invariants` is what must be
true of each. `python -m windrow.trials.virtual --seed 7` plays one.
"""
