"""Server of a browser session: one browser, its contexts, and the connections of its clients."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.errors import UncagedError, UsageError
from uncaged_engine.services.local_sockets import error_message, pack
from uncaged_engine.services.network import WebProblem, read_target

from ..operations import read_operation
from ..problems import BrowserProblem
from ..scope import BrowserScope
from ..secrets import BoundSecrets
from .contexts import SessionContexts
from .messages import KEPT, MAX_LINE_BYTES, ContextSpec, MissingContext
from .noting import PageNotes
from .resources import ClientResources

__all__ = ["IDLE_S", "SessionServer"]

IDLE_S = 600.0
"""A session leaves this long after its last user."""
POLL_S = 1.0
MAX_REFUSED = 20
"""Refused hosts that an answer lists."""
OWN_HOSTS = frozenset({"content-autofill.googleapis.com"})
"""Hosts that the browser asks for by itself; that they are refused is nothing about a page."""


class SessionServer:
    """Serves one browser until it was idle for `IDLE_S`, is stopped, or is gone."""

    def __init__(
        self,
        contexts: SessionContexts,
        status_of: Callable[[str], str | None],
        *,
        notes: PageNotes,
        idle_s: float = IDLE_S,
    ) -> None:
        """Args: status_of: see `SessionContexts.sweep`. notes: of pages that the own tabs open."""
        self._notes = notes
        self._contexts = contexts
        self._status_of = status_of
        self._idle_s = idle_s
        self._used_s = time.monotonic()
        self._busy = 0
        self._stop = asyncio.Event()
        self._connections: set[asyncio.StreamWriter] = set()

    def stop(self) -> None:
        """End the session as soon as its current operations are done."""
        self._stop.set()

    async def serve(self, listener: Any) -> None:
        """Accept clients on a listening socket until the session ends."""
        server = await asyncio.start_unix_server(self._attend, sock=listener, limit=MAX_LINE_BYTES)
        async with server:
            while not self._stop.is_set() and not self._is_idle():
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), POLL_S)
                await self._contexts.sweep(self._status_of)
            server.close()
            for writer in self._connections:
                writer.close()

    def _is_idle(self) -> bool:
        in_use = self._busy or self._contexts.names or self._contexts.external.is_on
        return not in_use and time.monotonic() - self._used_s > self._idle_s

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        resources = ClientResources(self._contexts)
        try:
            while line := await reader.readline():
                writer.write(pack(await self._reply(line, resources)))
                await writer.drain()
        except (ConnectionError, ValueError):  # gone, or a line beyond the limit
            pass
        finally:
            self._connections.discard(writer)
            writer.close()
            await resources.aclose()

    async def _reply(self, line: bytes, resources: ClientResources) -> dict[str, object]:
        self._busy += 1
        try:
            message = shapes.mapping(json.loads(line), ("message",))
            return {"value": await self._perform(message, resources)}
        except MissingContext as exc:
            return {"missing": exc.name}
        except BrowserProblem as exc:
            return {"problem": exc.document()}
        except UncagedError as exc:
            return error_message(exc)
        except ValueError as exc:
            return error_message(UsageError(f"a message that is not understood: {exc}"))
        finally:
            self._busy -= 1
            self._used_s = time.monotonic()

    async def _perform(self, message: Mapping[str, Any], resources: ClientResources) -> object:
        match message.get("op"):
            case "perform":
                return await self._operate(message)
            case "open":
                return {"new": await resources.open(ContextSpec.of(message.get("context")))}
            case "keep":
                resources.keep(str(message.get("name")))
                return {}
            case "record":
                return await resources.record(message)
            case "recorded":
                return await self._recorded(str(message.get("name")))
            case "held":
                return await self._release(message)
            case "state":
                context = self._contexts.find(str(message.get("name")))
                return None if context is None else await context.state()
            case "close":
                return {"closed": await self._contexts.close(str(message.get("name")))}
            case "status":
                external = self._contexts.external.status()
                shown = self._contexts.shown
                url = self._contexts.current_url()
                threads = self._contexts.names
                return {"threads": threads, "external": external, "shown": shown, "url": url}
            case "external":
                return await self._switch(on=shapes.truth(message.get("on"), ("on",)))
            case "stop":
                self.stop()
                return {}
            case op:
                raise UsageError(f"a browser session has no method {op!r}")

    async def _switch(self, *, on: bool) -> dict[str, object]:
        """Switch the person's browser on, with a new pairing code, or off."""
        external = self._contexts.external
        if on:
            return {"code": await external.switch_on(), **external.status()}
        await external.switch_off()
        return external.status()

    async def _recorded(self, name: str) -> object:
        """Return what was noted in a context; None if nothing was."""
        context = self._contexts.find(name)
        if context is None or context.recorder is None:
            return None
        try:
            return (await context.recorder.settled()).with_start().document()
        except UsageError:  # no page was opened
            return None

    async def _release(self, message: Mapping[str, Any]) -> object:
        """Return the requests that a proof's context holds, and send or refuse them if asked to."""
        context = self._contexts.find(str(message.get("name")))
        guard = None if context is None else context.guard
        if guard is None:
            return []
        held = guard.held
        if "send" in message:
            await guard.release(send=message["send"] is True)
        return held

    async def _operate(self, message: Mapping[str, Any]) -> object:
        name = str(message.get("name"))
        context = self._contexts.find(name)
        if context is None:
            raise MissingContext(name)
        seen = context.refused.count
        operation = read_operation(message.get("operation"))
        value = await context.perform(
            operation,
            BoundSecrets.of(message.get("secrets")),
            BrowserScope.read(message.get("scope")),
            passes=message.get("passes") is True,
        )
        refused = [one for one in context.refused.since(seen) if one[0] not in OWN_HOSTS]
        if refused and isinstance(value, dict):
            _check_page(value, refused)
            value = {**value, **refused_fields(refused)}
        if name == KEPT:
            why = await self._notes.note(context.control, operation, value)
            if why and isinstance(value, dict):
                value = {**value, "notIndexed": why}
        return value


def refused_fields(refused: Sequence[tuple[str, str]]) -> dict[str, object]:
    """Return the hosts that the proxy refused, with the reasons, as fields of an answer."""
    listed = sorted({f"{host}: {why}" for host, why in refused})
    more = len(listed) - MAX_REFUSED
    return {"refused": listed[:MAX_REFUSED], **({"moreRefused": more} if more > 0 else {})}


def _check_page(value: Mapping[str, Any], refused: Sequence[tuple[str, str]]) -> None:
    """Report a page that the proxy refused: what the tab shows then is the proxy's reason."""
    try:
        authority = read_target(str(value.get("url"))).authority
    except WebProblem:
        return
    for host, why in refused:
        if host == authority:
            raise BrowserProblem("blocked", why)
