"""Channel to an MCP server at an address: each message is a POST, answered by JSON or by a stream
of events (*Streamable HTTP*).
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from types import TracebackType
from typing import TYPE_CHECKING, Self

from uncaged_bundles.clean import shorten
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.services.network import RequestCancelled, Route, WebProblem, proxy_for
from uncaged_models.connection import ModelConnection

from .client import MAX_MESSAGE_BYTES, McpCancelled, McpProblem, Redact

if TYPE_CHECKING:
    import httpx2

SHOWN_CHARACTERS = 300
SESSION_HEADER = "mcp-session-id"
UNREACHED = frozenset({"dns", "connect", "tls"})


class WebChannel:
    """Session with a server over HTTP; its ``with`` block closes the connections."""

    def __init__(
        self,
        name: str,
        url: str,
        *,
        headers: Mapping[str, str],
        environment: Mapping[str, str],
        deadline: float,
        redact: Redact,
    ) -> None:
        """Prepare the connection; nothing is sent yet.

        Args:
            environment: the caller's, for proxies and certificates. deadline: on the monotonic
                clock.
        """
        self._name, self._url = name, url
        self._headers = {
            **headers,
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
        }
        self._redact = redact
        self._messages: deque[bytes] = deque()
        try:
            route = Route.of(url, environment, proxy=proxy_for(url, environment))
        except WebProblem as exc:
            raise self._unreached(exc) from None
        self._connection = ModelConnection(route)
        self._cut: Callable[[], None] = self._connection.begin(deadline)
        self._deadline = deadline
        self._is_cancelled = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.__exit__(kind, error, trace)

    def cancel(self) -> None:
        """End the exchange; any thread may call it."""
        self._is_cancelled = True
        self._cut()

    def agree(self, version: str) -> None:
        self._headers["mcp-protocol-version"] = version

    def send(self, message: Mapping[str, object]) -> None:
        import httpx2

        try:
            with self._connection.http.stream(
                "POST", self._url, content=json.dumps(message).encode(), headers=self._headers
            ) as response:
                self._take(response, message.get("id") if "method" in message else None)
        except (WebProblem, RequestCancelled, httpx2.HTTPError, httpx2.StreamError) as exc:
            raise self._error(exc) from None

    def receive(self) -> bytes:
        if not self._messages:
            raise McpProblem(f"the MCP server {self._name!r} gave no answer to the request")
        return self._messages.popleft()

    def _take(self, response: httpx2.Response, request: object) -> None:
        """Read a response: the messages up to the answer of a request, or nothing for another
        message.
        """
        session = response.headers.get(SESSION_HEADER)
        if session is not None:
            self._headers[SESSION_HEADER] = session
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if not 200 <= response.status_code < 300:
            words = shorten(str(self._redact(_beginning(response))), SHOWN_CHARACTERS)
            raise McpProblem(
                f"the MCP server {self._name!r} answers {response.status_code}: {words or 'without a reason'}"
            )
        if request is None:
            return
        if kind == "text/event-stream":
            for event in _events(self._limited(response)):
                self._messages.append(event)
                if _answers(event, request):
                    break  # a server may keep the stream open
        elif kind == "application/json":
            self._messages.append(b"".join(self._limited(response)))
        else:
            raise McpProblem(
                f"the MCP server {self._name!r} is none: {self._url} answers with {kind or 'something without a type'}"
            )

    def _limited(self, response: httpx2.Response) -> Iterator[bytes]:
        received = 0
        for chunk in response.iter_bytes():
            received += len(chunk)
            if received > MAX_MESSAGE_BYTES:
                raise McpProblem(
                    f"the MCP server {self._name!r} sends more than {MAX_MESSAGE_BYTES >> 20} MiB",
                    kind="too-large",
                )
            yield chunk

    def _error(self, exc: Exception) -> Exception:
        if self._is_cancelled:
            return McpCancelled()
        is_late = isinstance(exc, WebProblem) and exc.kind == "timeout"
        if is_late or time.monotonic() >= self._deadline:
            return McpProblem(
                f"the MCP server {self._name!r} did not answer in time", kind="timeout"
            )
        if isinstance(exc, WebProblem) and exc.kind in UNREACHED:
            return self._unreached(exc)
        return McpProblem(f"the answer of the MCP server {self._name!r} broke off: {exc}")

    def _unreached(self, exc: WebProblem) -> EnvironmentLacks:
        return EnvironmentLacks(
            f"the MCP server {self._name!r} cannot be reached ({exc})",
            remedy=f"start it, or correct mcpServers.{self._name}.url in config.yaml",
            begun=False,
        )


def _beginning(response: httpx2.Response) -> str:
    words = b""
    for chunk in response.iter_bytes():
        words += chunk
        if len(words) > 4 * SHOWN_CHARACTERS:
            break
    return words.decode("utf-8", "replace")


def _answers(event: bytes, request: object) -> bool:
    try:
        message = json.loads(event)
    except (ValueError, RecursionError):
        return True  # the client refuses it
    return not isinstance(message, dict) or (
        "method" not in message and message.get("id") == request
    )


def _events(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the data of each event of a stream, to its end."""
    data: list[bytes] = []
    rest = b""
    for chunk in chain(chunks, [b"\n\n"]):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            text = line.rstrip(b"\r")
            if text.startswith(b"data:"):
                data.append(text[5:].removeprefix(b" "))
            elif not text and data:
                yield b"\n".join(data)
                data = []
