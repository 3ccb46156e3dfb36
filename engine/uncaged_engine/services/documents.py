"""JSON documents about threads, as the command line prints them, and as the web page shows one."""

from __future__ import annotations

from ..threads.documents import summary_document
from ..threads.lean import Excerpt, LeanBlobs
from ..threads.rows import RowCount
from ..threads.step_documents import StepReader
from ..threads.thread_documents import (
    answer_after,
    lean_records,
    lean_view,
    sides_document,
    thread_document,
)

__all__ = [
    "Excerpt",
    "LeanBlobs",
    "RowCount",
    "StepReader",
    "answer_after",
    "lean_records",
    "lean_view",
    "sides_document",
    "summary_document",
    "thread_document",
]
