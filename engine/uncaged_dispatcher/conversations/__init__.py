"""Conversations: requests of one person or client in order, on disk, each driven to its end."""
