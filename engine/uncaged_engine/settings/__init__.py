"""uncaged_engine.settings."""
