"""Conditions and values computed cell by cell: trees, their types, their evaluation, and where they can be true."""
