"""uncaged_engine.processes."""
