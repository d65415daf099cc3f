"""Statements run one after the other, and what is said meanwhile."""
