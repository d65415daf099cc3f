"""Measurements of windrow against its peers."""
