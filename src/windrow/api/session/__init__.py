"""Statements carried out one after another, and what a prompt needs to know of them."""
