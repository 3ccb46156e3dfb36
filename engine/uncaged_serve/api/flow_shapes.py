"""Shapes of what `/api/flows` is asked and answers."""

from __future__ import annotations

from typing import Any

from .endpoints import ApiDocument, Fields


class ListedFlow(ApiDocument):
    flow: str
    hash: str
    since_ms: int
    enabled: bool
    versions: int
    source: str
    unsupported: str | None


class FlowList(ApiDocument):
    flows: list[ListedFlow]
    problems: list[str]


class FlowVersion(ApiDocument):
    hash: str
    since_ms: int


class PastRun(ApiDocument):
    thread_id: str
    status: str
    success: bool | None
    started_ms: int
    duration_ms: int
    cost: float


class FlowDocument(ApiDocument):
    flow: str | None
    hash: str
    description: str
    kind: str
    enabled: bool | None
    may_do: list[str]
    roles: dict[str, str]
    parameters: dict[str, Any]
    patterns: list[str]
    examples: list[Any]
    versions: list[FlowVersion]
    past: list[PastRun]
    estimate: dict[str, Any]
    trusted: bool


class GraphDocument(ApiDocument):
    """live: roles at which threads are now. running: whether a thread runs, so that it changes."""

    origin: str
    drawing: dict[str, Any]
    live: list[str]
    running: bool


class VersionChanges(ApiDocument):
    old: str
    new: str
    sections: dict[str, list[str]]


class Changed(ApiDocument):
    flow: str
    hash: str
    enabled: bool


class DifferenceQuery(Fields):
    old: str
    new: str


class RollbackBody(Fields):
    hash: str | None = None
