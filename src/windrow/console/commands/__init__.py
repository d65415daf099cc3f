"""What `windrow` can be asked on a command line, one module a command."""
