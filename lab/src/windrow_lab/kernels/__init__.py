"""Compiled code of the studies, as in `windrow.kernels`: arrays in, arrays out, no objects, no
I/O."""

from windrow.kernels.jit import COMPILED

COMPILED |= {
    "streams.simulate": ("the simulation of streams", 4),
    "placing.place": ("the schedulers of grids", 4),
    "placing.place_level": ("the scheduling of levels", 4),
    "duplicates.place_with_copies": ("the scheduling of copies", 4),
}
