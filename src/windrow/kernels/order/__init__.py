"""Order statistics over windows: one by one, by sets of ranks, by networks."""
