"""Shape of a thread's summary in answers of the API."""

from __future__ import annotations

from typing import Any

from .endpoints import ApiDocument


class SummaryDocument(ApiDocument):
    """A thread in one line, as `threads --json` has it."""

    thread_id: str
    flow: str
    hash: str
    status: str
    steps: int
    started_ms: int
    updated_ms: int
    success: bool | None
    used: dict[str, Any]
    message: str
    undecided: list[str]
    problem: str | None
    imported: bool
