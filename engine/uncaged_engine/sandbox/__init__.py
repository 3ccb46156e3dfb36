"""uncaged_engine.sandbox."""
