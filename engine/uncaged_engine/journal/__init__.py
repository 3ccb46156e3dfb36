"""The log of a thread: how its lines look, how they are chained, kept, read back and packed."""
