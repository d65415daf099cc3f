"""What can be done to arrays: each module joins storage and execution for one kind of change."""
