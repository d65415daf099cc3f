"""Changes to sparse arrays."""
