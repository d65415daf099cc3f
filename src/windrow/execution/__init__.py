"""Running tasks, in this process or on Spark, and telling how far they are."""
