"""Delivery of notifications by a command or a signed webhook."""
