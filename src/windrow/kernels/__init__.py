"""Compiled code: arrays in, arrays out, no objects, no I/O. Only importing `linking` or `njit`
loads numba."""
