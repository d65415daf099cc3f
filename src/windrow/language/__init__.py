"""The language of the console and of `db.query`: text to plans and statements, and mistakes in it."""
