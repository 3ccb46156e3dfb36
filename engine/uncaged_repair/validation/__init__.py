"""Validation of candidate patches in stages, and the search over them."""
