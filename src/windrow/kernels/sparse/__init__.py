"""Cells in coordinate order, and what their neighbourhoods hold."""
