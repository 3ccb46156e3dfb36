"""Opening of a client for the API that a model's settings name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import assert_never

from .client import ModelClient
from .connection import ModelConnection
from .settings import ModelSettings


@contextmanager
def open_client(settings: ModelSettings, environment: Mapping[str, str]) -> Iterator[tuple[ModelClient, ModelConnection]]:
    """Yield a client and its connection; nothing is sent yet. environment: the caller's, for proxies and certificates."""
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
