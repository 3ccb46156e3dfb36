"""uncaged_engine."""
