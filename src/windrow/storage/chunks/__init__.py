"""What is known of chunks: encoded, kept in the catalog, and derived for a version."""
