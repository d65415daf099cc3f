"""The papers' own algorithms, for windows (000 to 002) and for frames (003)."""
