"""HTTP connection to a model's endpoint, with a deadline; any thread can cut it, and a blocked read
then ends at once.

Proxies and certificates come from the caller's environment, never from that of this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self, assert_never

from uncaged_engine.services.network import Route, WebProblem, proxy_for

from .client import ModelClient
from .errors import Endpoint
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
    endpoint = Endpoint(url=settings.url, model=settings.model)
    try:
        route = Route.of(settings.url, environment, proxy=proxy_for(settings.url, environment))
    except WebProblem as exc:
        raise endpoint.unreachable(exc) from None
    with ModelConnection(route) as connection:
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
    """HTTP client of a conversation; its ``with`` block closes all its connections."""

    def __init__(self, route: Route) -> None:
        import httpx2
        from uncaged_engine.services.stream import HttpClient

        from .transport import Transport

        client = HttpClient(route)
        self._session = client.session
        self.timeout = httpx2.Timeout(SILENCE_S, connect=CONNECT_S)
        self.http: httpx2.Client = httpx2.Client(
            timeout=self.timeout, trust_env=False, transport=Transport(client)
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

    def begin(self, deadline_s: float) -> Callable[[], None]:
        """Allow requests until the deadline, and return the action that cuts the connection."""
        return self._session.begin(deadline_s)

    @property
    def is_over(self) -> bool:
        """Whether the connection was cut or the deadline has passed."""
        return self._session.is_over
