"""Transport of httpx2 over the network stream that effects use, too. It loads the HTTP library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import httpcore2
import httpx2
from uncaged_engine.services.stream import HttpClient


class Transport(httpx2.BaseTransport):
    """Transport over one client; raises `WebProblem` and `RequestCancelled`."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        sent = httpcore2.Request(
            request.method,
            httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=cast("httpx2.SyncByteStream", request.stream),
            extensions=request.extensions,
        )
        response = self._client.send(sent)
        return httpx2.Response(
            response.status,
            headers=response.headers,
            stream=Content(self._client.content(sent, response), response.close),
            extensions=response.extensions,
        )

    def close(self) -> None:
        self._client.close()


class Content(httpx2.SyncByteStream):
    """Body of a response."""

    def __init__(self, chunks: Iterator[bytes], close: Callable[[], None]) -> None:
        self._chunks = chunks
        self._close = close

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def close(self) -> None:
        self._close()
