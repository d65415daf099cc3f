"""Views whose results do not depend on some dimensions: stored by position, and shown at every cell that lies there."""
