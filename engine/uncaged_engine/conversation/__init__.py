"""uncaged_engine.conversation."""
