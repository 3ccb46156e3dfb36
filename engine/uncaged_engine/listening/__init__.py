"""Listeners on loopback: authentication of requests, and detection of disconnected clients."""
