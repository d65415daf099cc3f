"""How results are patched, one kind of step a file.

The law, with S the left cells that stay as they are, L those that leave and N those that come:
**change of a view = S with what changed on the right + N with the right as it is - L with the right as it was.**
The three sets have nothing in common, so that each pair is met once, in a join of an array with itself, too.
"""
