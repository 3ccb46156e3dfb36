"""Programs and event loops that the engine starts, and that end with it."""
