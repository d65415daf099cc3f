"""Changes to dense arrays."""
