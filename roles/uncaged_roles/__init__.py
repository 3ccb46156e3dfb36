"""Roles as pure data: one module each, exposing ``role``."""
