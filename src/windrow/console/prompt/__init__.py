"""The prompt: typing, completing, colouring, help."""
