"""uncaged_engine.journal."""
