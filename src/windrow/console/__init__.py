"""The windrow command. Modules of commands import what is heavy inside them, so that help comes at once."""
