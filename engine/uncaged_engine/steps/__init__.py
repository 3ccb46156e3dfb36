"""Step loop of a thread, and the driver that executes its commands."""
