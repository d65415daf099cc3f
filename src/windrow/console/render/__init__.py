"""How results look on a screen, in a file and in a pipe."""
