"""Answers computed while stored chunks and parts are decoded, without tables or blocks in between."""
