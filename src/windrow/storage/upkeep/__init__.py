"""Sparse arrays kept in order: a batch is netted and sealed, parts are folded and merged, old warehouses migrated."""
