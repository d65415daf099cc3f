"""Groups of cells, and rows in an order."""
