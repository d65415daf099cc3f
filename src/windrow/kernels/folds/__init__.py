"""Values folded into groups as they are decoded: counts, sums, moments and extremes, without a copy."""
