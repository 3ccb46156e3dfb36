"""A definition goes in and the bytes of a bundle come out."""

from .workflow import build_workflow

__all__ = ["build_workflow"]
