"""Compiled code: arrays in, arrays out, no objects, no I/O. Importing any module of it but `state` loads numba."""
