"""Frames on Spark DataFrames: which task gets which rows; what is computed of them is in ``kernels.frames``."""
