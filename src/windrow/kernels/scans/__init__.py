"""Sums, counts and extremes over windows, by block scans."""
