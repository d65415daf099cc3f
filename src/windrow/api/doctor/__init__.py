"""What is wrong with this machine or this warehouse, and how to mend it."""
