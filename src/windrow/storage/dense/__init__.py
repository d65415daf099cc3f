"""Dense arrays as Zarr in Icechunk: their repositories, chunks, blocks and what is stored of each version."""
