"""Constructions: sentence templates learned from translations, and the files that keep them."""
