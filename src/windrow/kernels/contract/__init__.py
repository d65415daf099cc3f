"""What kernels take and give: sweeps, ranks, outcomes, keys. No compiler here."""
