"""JSON documents about threads, as the command line prints them."""

from __future__ import annotations

from ..threads.documents import summary_document

__all__ = ["summary_document"]
