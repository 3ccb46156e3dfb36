"""Stores in directories and elsewhere."""
