"""Roles as pure data, one module each, with the constant ``role``."""
