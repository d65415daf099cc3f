"""SQL text over frames and arrays, and a table function; what is computed over frames is in ``kernels.frames``."""
