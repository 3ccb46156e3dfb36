"""Validation of bundle files: their syntax tree is checked, never executed."""
