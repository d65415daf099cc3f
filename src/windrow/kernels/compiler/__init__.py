"""Numba's and LLVM's internals, and the cache of compiled code. No other folder imports them."""
