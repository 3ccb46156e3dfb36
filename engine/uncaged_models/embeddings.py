"""Client of OpenAI's embeddings API, for any endpoint that has it: texts to vectors of length 1."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from uncaged_bundles.errors import EnvironmentLacks, UncagedError
from uncaged_engine.services import secrets
from uncaged_engine.services.network import RequestCancelled, Route, WebProblem, proxy_for
from uncaged_engine.services.settings import Config

from .client import Usage
from .connection import ModelConnection
from .errors import Endpoint
from .openai import MAX_ERROR_BYTES, complaint, number
from .settings import ModelSettings, read_settings, with_key

BATCH = 64
MAX_BYTES = 32 << 20
MAX_DIMENSIONS = 8192
Vector: TypeAlias = "array[float]"
OnCancel = Callable[[Callable[[], None]], AbstractContextManager[None]]


class EmbeddingsFailed(UncagedError):
    """Failure of the endpoint, with its secrets replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel:
    """Model of ``embeddings`` in config.yaml. known: its secrets by value."""

    settings: ModelSettings
    known: Mapping[str, str]

    @property
    def id(self) -> str:
        """Return a text that is another one for a model with other vectors."""
        options = sorted((key, str(value)) for key, value in self.settings.options.items())
        return f"{self.settings.url} {self.settings.model} {options}"


def embedding_model(config: Config, environment: Mapping[str, str]) -> EmbeddingModel | None:
    """Return the configured model; None if there is none.

    Raises:
        EnvironmentLacks: its key has no value.
    """
    if config.embeddings is None:
        return None
    settings, known = secrets.resolve(
        with_key("openai", config.embeddings.settings), config, environment
    )
    return EmbeddingModel(
        settings=read_settings(
            "openai", cast("Mapping[str, object]", settings), config.for_agents(environment)
        ),
        known=known,
    )


class EmbeddingClient:
    """Requests to one model before a deadline. tokens: what the endpoint counted so far."""

    def __init__(
        self,
        model: EmbeddingModel,
        environment: Mapping[str, str],
        *,
        deadline: float,
        on_cancel: OnCancel,
    ) -> None:
        self.model = model
        self.tokens = 0
        self._environment = environment
        self._deadline = deadline
        self._on_cancel = on_cancel

    @property
    def id(self) -> str:
        """Return the identity of the model."""
        return self.model.id

    def usage(self) -> dict[str, object]:
        """Return the usage as a record's fields."""
        return {"model": self.model.settings.model, **Usage(input=self.tokens).document()}

    def vectors(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of at most `BATCH` texts.

        Raises:
            EmbeddingsFailed.
        """
        import httpx2

        settings = self.model.settings
        endpoint = Endpoint(url=settings.url, model=settings.model)
        try:
            proxy = proxy_for(settings.url, self._environment)
            route = Route.of(settings.url, self._environment, proxy=proxy)
            with (
                ModelConnection(route) as connection,
                self._on_cancel(connection.begin(self._deadline)),
            ):
                return self._read(self._answer(connection, endpoint, texts), len(texts))
        except (WebProblem, RequestCancelled, httpx2.HTTPError, httpx2.StreamError) as exc:
            raise self._failed(endpoint.network_error(exc)) from None
        except EnvironmentLacks as exc:
            raise self._failed(exc) from None
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as exc:
            raise self._failed(exc) from None

    def _answer(
        self, connection: ModelConnection, endpoint: Endpoint, texts: Sequence[str]
    ) -> object:
        import json

        settings = self.model.settings
        headers = {"authorization": f"Bearer {settings.key}"} if settings.key else {}
        body = {"model": settings.model, "input": list(texts), **settings.options}
        with connection.http.stream(
            "POST", f"{settings.url}/embeddings", json=body, headers=headers
        ) as response:
            limit = MAX_BYTES if response.status_code == 200 else MAX_ERROR_BYTES
            data = b""
            for chunk in response.iter_bytes():
                data += chunk
                if len(data) > limit:
                    break
        if response.status_code != 200:
            raise ValueError(str(endpoint.refused(response.status_code, complaint(data))))
        if len(data) > MAX_BYTES:
            raise ValueError(f"{settings.url} sends more than {MAX_BYTES >> 20} MiB")
        return json.loads(data)

    def _read(self, answer: Any, count: int) -> list[Vector]:
        """Return the vectors of an answer in the order of the texts."""
        usage = answer.get("usage") if isinstance(answer, dict) else None
        self.tokens += number(usage, "prompt_tokens") if isinstance(usage, dict) else 0
        listed = answer["data"] if isinstance(answer, dict) else ()
        ordered = sorted(listed, key=lambda item: int(item["index"]))
        if [item["index"] for item in ordered] != list(range(count)):
            raise ValueError(f"{self.model.settings.url} sent no vector for each text")
        return [normalised(item["embedding"]) for item in ordered]

    def _failed(self, problem: Exception) -> EmbeddingsFailed:
        text = str(problem) or type(problem).__name__
        return EmbeddingsFailed(str(secrets.redact(text, self.model.known)))


def normalised(values: object) -> Vector:
    """Return a vector of length 1.

    Raises:
        ValueError: these are no finite numbers, or all are 0.
    """
    if not isinstance(values, list) or not 0 < len(values) <= MAX_DIMENSIONS:
        raise ValueError("the endpoint sent something that is no vector")
    numbers = [float(value) for value in values]
    length = math.sqrt(sum(value * value for value in numbers))
    if not math.isfinite(length) or length == 0:
        raise ValueError("the endpoint sent something that is no vector")
    return array("f", [value / length for value in numbers])
