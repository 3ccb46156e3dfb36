"""Recipes: JSON forms of flows, with their parameters, patterns and sandbox."""
