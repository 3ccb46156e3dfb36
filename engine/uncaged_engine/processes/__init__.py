"""Child processes and the event loop thread of the engine."""
