"""Threads of a store that several machines share."""
