"""Queries as frozen plans: what is asked, independent of where and how it will run."""
