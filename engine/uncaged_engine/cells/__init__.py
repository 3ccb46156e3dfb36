"""uncaged_engine.cells."""
