"""uncaged_engine.steps."""
