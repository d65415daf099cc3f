"""Queries answered from views: which view can serve, at what cost, and how its results become those of the query."""
