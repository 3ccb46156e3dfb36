"""uncaged_engine.threads."""
