"""Loops that plan which node joins which pair of chunks, and where chunks are at home."""
