"""Canonical JSON, without the journal that is written in it."""

from __future__ import annotations

from ..journal.codec import MAX_DEPTH, CodecError, decode, depth, encode

__all__ = ["MAX_DEPTH", "CodecError", "decode", "depth", "encode"]
