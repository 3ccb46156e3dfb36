"""Terms of the JSON API: an endpoint, what a request asked, and answers other than a document."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel
from uncaged_engine.api import Engine

MOST_READ = 500
"""Journals that are read for an answer, where the index does not know them yet."""

Method = Literal["GET", "POST"]


class Fields(BaseModel):
    """Keys of a query or of a body, in camel case outside. An unknown key is an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, alias_generator=to_camel
    )


class ApiDocument(BaseModel):
    """Shape of an answer, for the OpenAPI document. Keys are in camel case outside."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What a page has to know about the server. routes: the names of the served routes."""

    read_only: bool = False
    routes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request. path: the values of the braces in the endpoint's path. query, body: instances of
    the endpoint's classes. after: the last number that a follower of events has seen.
    """

    path: Mapping[str, str] = field(default_factory=dict)
    query: Any = None
    body: Any = None
    after: str = ""
    session: Session = Session()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes:
    """Answer that is no JSON document. It is shown by a browser only if it is an image."""

    data: bytes
    media_type: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """Server-sent event. id: what a client that connects again sends as ``Last-Event-ID``."""

    kind: str
    data: object
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiEndpoint:
    """Path and method of the API.

    handler: is called in a thread of its own, and may block. Its result is a JSON document, or
    `Bytes`. It raises UncagedError for what the person can correct.
    """

    method: Method
    path: str
    summary: str
    handler: Callable[[Engine, Asked], object]
    query: type[Fields] | None = None
    body: type[Fields] | None = None
    answer: type[BaseModel] | None = None
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class EventStream:
    """Path of a stream of server-sent events. handler: is called in the event loop."""

    path: str
    summary: str
    handler: Callable[[Engine, Asked], AsyncIterator[ServerEvent]]
    query: type[Fields] | None = None


class ConflictError(Exception):
    """Another request was first. document: what it did."""

    def __init__(self, message: str, document: Mapping[str, object]) -> None:
        super().__init__(message)
        self.document = document
