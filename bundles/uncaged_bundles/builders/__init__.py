"""Builders: each turns a definition, a recipe or a script file into the bytes of a bundle."""

from .workflow import build_workflow

__all__ = ["build_workflow"]
