"""Aggregates as data: what each is called, takes and gives, and which primitive window operations it is made of."""
