"""Recipes: the JSON forms of flows, read with their parameters, patterns and sandbox."""
