"""The fast ways to aggregate over frames of rows; ``strategies`` lists all ways to compute each aggregate."""
