"""Packs of git objects, kept as blobs of a store."""

from __future__ import annotations

from ..shared.replica import pack_blobs

__all__ = ["pack_blobs"]
