"""Memory of a conversation: the things that its results named, in SQLite."""
