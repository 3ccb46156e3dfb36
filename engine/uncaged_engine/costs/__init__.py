"""Prices of models, and limits on what a thread may spend."""
