"""ASGI application of the JSON API."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import cast

import anyio.to_thread
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from uncaged_bundles.errors import StorageError, UncagedError, UsageError
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import App

from .endpoints import ApiEndpoint, Asked, Bytes, EventStream, Fields, ServerEvent, Session
from .errors import error_document, invalid, response_of
from .openapi import openapi_document
from .table import ENDPOINTS, EVENT_ENDPOINTS

SESSION = "uncaged.session"
"""Key in a request's scope of the server's `Session`."""
MAX_BODY_BYTES = 4 << 20
AT_ONCE = 8
"""Handlers that run at the same time; others wait."""
KEEP_ALIVE_S = 15.0
SHOWN_IMAGES = ("image/png", "image/jpeg", "image/webp")
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
}

Serve = Callable[[Request], Awaitable[Response]]


def route(engine: Engine) -> App:
    """Return the application that serves `/api`."""
    slots = anyio.CapacityLimiter(AT_ONCE)
    document = openapi_document(ENDPOINTS, EVENT_ENDPOINTS)

    async def described(_: Request) -> Response:
        return _json(document)

    routes = [Route("/api/openapi.json", described, methods=["GET"])]
    routes += [
        Route(one.path, _answering(engine, one, slots), methods=[one.method]) for one in ENDPOINTS
    ]
    routes += [Route(one.path, _streaming(engine, one), methods=["GET"]) for one in EVENT_ENDPOINTS]
    handlers = {404: _no_route, 405: _no_route}
    return cast("App", Starlette(routes=routes, exception_handlers=handlers))


async def _no_route(request: Request, _: Exception) -> Response:
    message = f"{request.method} {request.url.path} is not in /api/openapi.json"
    return _json(error_document("not-found", message), 404)


def _json(document: object, status: int = 200) -> Response:
    try:
        return JSONResponse(document, status, HEADERS)
    except UnicodeEncodeError:  # half of a pair, which a journal can hold
        text = json.dumps(document, separators=(",", ":"))
        return Response(text, status, HEADERS, media_type="application/json")


def _answering(engine: Engine, endpoint: ApiEndpoint, slots: anyio.CapacityLimiter) -> Serve:
    async def serve(request: Request) -> Response:
        try:
            asked = await _asked(request, endpoint.query, endpoint.body)
            work = partial(endpoint.handler, engine, asked)
            try:
                answer = await anyio.to_thread.run_sync(work, limiter=slots)
            except StorageError:
                if not (engine.is_shared and endpoint.method == "GET"):
                    raise
                # a connection that the database ended is noticed by its first use
                answer = await anyio.to_thread.run_sync(work, limiter=slots)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as exc:
            status, document = response_of(exc)
            return _json(document, status)
        return _bytes(answer) if isinstance(answer, Bytes) else _json(answer, endpoint.status)

    return serve


def _bytes(answer: Bytes) -> Response:
    name = re.sub(r"[^A-Za-z0-9._-]", "_", answer.name)
    how = "inline" if answer.media_type in SHOWN_IMAGES else "attachment"
    kind = answer.media_type if how == "inline" else "application/octet-stream"
    disposition = f'{how}; filename="{name}"' if name else how
    return Response(
        answer.data, headers={**HEADERS, "Content-Disposition": disposition}, media_type=kind
    )


async def _asked(request: Request, query: type[Fields] | None, body: type[Fields] | None) -> Asked:
    """Return what a request asks.

    Raises:
        UsageError: a key is missing, unknown or wrong.
    """
    pairs = request.query_params.multi_items()
    if query is None and pairs:
        raise UsageError(f"{request.url.path} takes no query")
    values: dict[str, object] = {}
    for name, value in pairs:
        before = values.get(name)
        if before is None:
            values[name] = value
        else:
            values[name] = [*before, value] if isinstance(before, list) else [before, value]
    try:
        return Asked(
            path=request.path_params,
            query=None if query is None else query.model_validate(values),
            body=None if body is None else body.model_validate_json(await _body(request)),
            after=request.headers.get("last-event-id", ""),
            session=request.scope.get(SESSION, Session()),
        )
    except ValidationError as exc:
        raise UsageError(invalid(exc)) from exc


async def _body(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise UsageError(f"the body is longer than {MAX_BODY_BYTES >> 20} MB")
        parts.append(part)
    return b"".join(parts) or b"{}"


def _streaming(engine: Engine, endpoint: EventStream) -> Serve:
    async def serve(request: Request) -> Response:
        try:
            asked = await _asked(request, endpoint.query, None)
            events = endpoint.handler(engine, asked)
            first = await anext(events, None)  # an error before the first event has a status
        except Exception as exc:
            status, document = response_of(exc)
            return _json(document, status)
        return StreamingResponse(
            _stream(first, events), headers=HEADERS, media_type="text/event-stream"
        )

    return serve


async def _stream(
    first: ServerEvent | None, events: AsyncIterator[ServerEvent]
) -> AsyncIterator[bytes]:
    """Yield events as bytes, and a comment when there was none for a while."""
    if first is None:
        return
    yield _encoded(first)
    following = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            await asyncio.wait({following}, timeout=KEEP_ALIVE_S)
            if not following.done():
                yield b":\n\n"
                continue
            event = following.result()
            if event is None:
                return
            yield _encoded(event)
            following = asyncio.ensure_future(anext(events, None))
    except (UncagedError, OSError) as exc:
        yield _encoded(ServerEvent(kind="error", data=response_of(exc)[1]["error"]))
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await following
        if hasattr(events, "aclose"):
            await events.aclose()


def _encoded(event: ServerEvent) -> bytes:
    data = json.dumps(event.data, separators=(",", ":"))
    number = f"id: {event.id}\n" if event.id else ""
    return f"{number}event: {event.kind}\ndata: {data}\n\n".encode()
