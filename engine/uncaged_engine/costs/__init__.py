"""uncaged_engine.costs."""
