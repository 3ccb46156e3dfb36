"""Kinds of failures that need no model, a module each."""
