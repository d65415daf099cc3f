"""Files in and out: NetCDF, Zarr, Parquet and CSV, through one registry."""
