"""Carrying of code: the author's functions, and all that they name, are copied into a bundle."""
