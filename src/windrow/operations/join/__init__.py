"""Similarity joins: pairs of cells found by shape, and what is computed of them."""
