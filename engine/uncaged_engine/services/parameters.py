"""Checks of a flow's parameters, as they are made when a thread starts."""

from __future__ import annotations

from ..threads.parameters import settle

__all__ = ["settle"]
