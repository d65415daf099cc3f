"""Loops around users' own aggregates."""
