"""Distinct values and modes, by counters."""
