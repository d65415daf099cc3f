"""What arrays, windows, shapes and SQL frames are: values that cannot change, no input or output."""
