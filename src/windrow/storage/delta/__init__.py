"""The Delta format: log entries and deletion vectors."""
