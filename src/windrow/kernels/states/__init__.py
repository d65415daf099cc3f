"""Loops over groups of rows: from the values of each group to the state that is kept of it."""
