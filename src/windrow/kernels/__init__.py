"""Loops over NumPy arrays, compiled by Numba; nothing else. Kernels know nothing of schemas, chunks or stores."""
