"""Where arrays live: the catalog, the stores of dense and sparse arrays, transactions, garbage."""
