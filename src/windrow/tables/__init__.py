"""Frames on Spark tables: the builder, the routes over a cluster, SQL and a table function."""
