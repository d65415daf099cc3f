"""What xarray objects offer under ``.windrow``: windows, shapes and groups on data in memory."""
