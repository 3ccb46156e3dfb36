"""Listeners on loopback: who may speak to them, and whether the client is still there."""
