"""Says that something is compiled, and about how long that takes: at its first use, once for each version."""

from __future__ import annotations

from windrow.cli import terminal

# What people would call a kernel, and seconds on a usual machine; what compiles within two seconds is not mentioned.
WORDS = {
    "advance.advance": ("the simulator", 8),
    "trial.go_on": ("the simulation of whole runs", 8),
    "estimate.estimate": ("the forecaster", 3),
    "estimate.run_times": ("the estimate of run times", 3),
    "play.rollout": ("the look-ahead", 8),
    "streams.simulate": ("the simulation of streams", 4),
}


def announce() -> None:
    """From now on, say so."""
    from windrow.kernels import jit

    jit.hearers[:] = [_say]


def _say(kernel: str) -> None:
    if kernel in WORDS:
        what, seconds = WORDS[kernel]
        terminal.say(f"compiling {what} (once per version, about {seconds} s) ...")
