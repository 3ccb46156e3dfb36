"""Pages by name, and searches of the web."""
