"""Filtering proxy that connects only to the hosts that a policy names."""

from __future__ import annotations

from ..network.proxy import Proxy

__all__ = ["Proxy"]
