"""Recordings of web tasks: made, read, imported, exported, and replayed."""
