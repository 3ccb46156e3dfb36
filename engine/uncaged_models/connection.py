"""HTTP connection to a model's endpoint, which any thread can cut; a blocked read then ends at
once.

Proxies and certificates come from the caller's environment, never from that of this process.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, assert_never
from urllib.parse import urlsplit

from uncaged_engine.services.network import proxy_for

from .client import ModelClient
from .settings import ModelSettings

if TYPE_CHECKING:
    import httpx2

CONNECT_S = 10.0
SILENCE_S = 600.0
"""Read timeout; a server is silent while it reads a long prompt."""


@contextmanager
def open_client(
    settings: ModelSettings, environment: Mapping[str, str]
) -> Iterator[tuple[ModelClient, ModelConnection]]:
    """Yield a client and its connection; nothing is sent yet. environment: the caller's, for
    proxies and certificates.
    """
    with ModelConnection(settings.url, environment) as connection:
        match settings.wire:
            case "anthropic":
                from .anthropic import AnthropicClient

                yield AnthropicClient(settings, connection), connection
            case "openai":
                from .openai import OpenAIClient

                yield OpenAIClient(settings, connection), connection
            case _:
                assert_never(settings.wire)


class ModelConnection:
    """HTTP client whose ``with`` block closes all its connections."""

    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        import httpx2

        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._is_cut = False
        self.timeout = httpx2.Timeout(SILENCE_S, connect=CONNECT_S, pool=CONNECT_S)
        self.http: httpx2.Client = httpx2.Client(
            timeout=self.timeout,
            trust_env=False,
            proxy=proxy_for(url, environment),
            verify=_certificates(url, environment),
            event_hooks={"request": [self._watch]},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.http.close()

    @property
    def is_cut(self) -> bool:
        return self._is_cut

    def cut(self) -> None:
        """Shut down every connection, and refuse new ones."""
        with self._lock:
            self._is_cut = True
            for each in self._sockets:
                _shut(each)

    def _watch(self, request: httpx2.Request) -> None:
        import httpx2

        if self._is_cut:
            raise httpx2.ConnectError("the line was cut")
        request.extensions["trace"] = self._trace

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Record each new connection; a blocked read ends only when its socket is shut down."""
        if not event.endswith(("connect_tcp.complete", "start_tls.complete")):
            return
        found = info["return_value"].get_extra_info("socket")
        with self._lock:
            self._sockets.append(found)
            if self._is_cut:
                _shut(found)


def _shut(connection: socket.socket) -> None:
    with suppress(OSError):
        # not the method of a TLS socket, which would lose its TLS state
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _certificates(url: str, environment: Mapping[str, str]) -> Any:
    import ssl

    if urlsplit(url).scheme != "https":
        # reading the system's certificates takes longer than a local model's first token
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    file, directory = environment.get("SSL_CERT_FILE"), environment.get("SSL_CERT_DIR")
    return ssl.create_default_context(cafile=file, capath=directory) if file or directory else True
