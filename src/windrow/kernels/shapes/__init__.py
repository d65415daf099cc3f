"""Neighbourhoods by shape on dense arrays: diamonds, discs, lists of offsets, given as runs along the last axis."""
