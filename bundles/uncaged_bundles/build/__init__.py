"""Turns definitions into bundles."""
