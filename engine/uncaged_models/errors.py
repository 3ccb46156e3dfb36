"""Errors of model endpoints, classified by the next step: fix the environment, retry, shorten, or
give up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.services.network import BrokenReply, NoReply, ProxyRefused, WebProblem

from .client import Usage

SHOWN_CHARACTERS = 600
TOO_LONG = re.compile(
    r"context[ _-]?(length|size|window)|prompt is too long|input is too long|too many (input )?tokens|exceed\w* .{0,40}(context|maximum)",
    re.I,
)
NO_MONEY = re.compile(r"insufficient_quota|credit balance|billing|spend_limit", re.I)
NO_MODEL = re.compile(
    r"model.{0,200}(not found|does not exist|not exist|unknown|not supported)|(unknown|invalid|no such) model",
    re.I | re.S,
)

FailureKind = Literal["model", "refusal", "timeout"]


class ModelFailed(Exception):
    """Failure of a model that a retry cannot change."""

    def __init__(self, message: str, *, kind: FailureKind = "model") -> None:
        super().__init__(message)
        self.kind = kind


class TooLong(ModelFailed):
    """Request larger than the model's context."""


class Busy(Exception):
    """Overload or rate limit of the endpoint. retry_after_s: its `Retry-After`, if it sends one."""

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class ReplyBroken(Exception):
    """Reply that broke off. usage: the tokens used until then, as far as known."""

    def __init__(self, message: str, *, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage or Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Endpoint as named in messages. config: the file with its settings."""

    url: str
    model: str
    config: str = "config.yaml"

    def refused(self, status: int, words: str, *, retry_after_s: float | None = None) -> Exception:
        """Return the error for an HTTP status and body."""
        detail = " ".join(words.split())[:SHOWN_CHARACTERS] or "it gave no reason"
        if status == 402 or (status in (400, 403, 429) and NO_MONEY.search(words)):
            return EnvironmentLacks(
                f"{self.url} asks for payment ({detail})",
                remedy=f"settle that or use another model in {self.config}",
            )
        if status == 401:
            return EnvironmentLacks(
                f"{self.url} does not accept the key ({detail})",
                remedy="put a valid one where its secret comes from",
            )
        if status == 403:
            return EnvironmentLacks(
                f"{self.url} denies the key access to {self.model!r} ({detail})",
                remedy="use another key or model",
            )
        if status == 404 or (status == 400 and NO_MODEL.search(words)):
            return EnvironmentLacks(
                f"{self.url} has no model {self.model!r} ({detail})",
                remedy=f"fix model or baseUrl in {self.config}",
            )
        if status == 413 or (status in (400, 422, 500) and TOO_LONG.search(words)):
            return self.too_long(detail)
        if status in (408, 409, 425, 429) or status >= 500:
            return Busy(f"{self.url} answered {status}: {detail}", retry_after_s=retry_after_s)
        return ModelFailed(
            f"{self.url} refused the request to {self.model!r} with {status}: {detail}"
        )

    def too_long(self, detail: str) -> TooLong:
        return TooLong(
            f"the request is larger than the context of {self.model!r} ({detail}); lower limits.historyCharacters in config.yaml, "
            "or use a model with a larger context"
        )

    def expect_stream(self, headers: Mapping[str, str]) -> None:
        """Raise if a successful response is no event stream, such as a web page at a wrong
        address.
        """
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "text/event-stream":
            raise EnvironmentLacks(
                f"{self.url} is no model's endpoint: it answers with {kind or 'something without a type'}, which is no stream of events",
                remedy=f"fix baseUrl in {self.config}",
            )

    def network_error(self, error: BaseException, usage: Usage | None = None) -> Exception:
        """Return the error for a request that failed on the network. usage: until then."""
        match error:
            case ProxyRefused():
                return EnvironmentLacks(
                    f"the proxy for {self.url} refuses it ({error.reason})",
                    remedy="set HTTPS_PROXY, HTTP_PROXY or NO_PROXY",
                )
            case NoReply():
                return ReplyBroken(f"{self.url} gave no answer: {error.reason}", usage=usage)
            case BrokenReply():
                return ReplyBroken(
                    f"the answer of {self.url} broke off: {error.reason}", usage=usage
                )
            case WebProblem(kind="tls"):
                return EnvironmentLacks(
                    f"there is no secure connection with {self.url} ({error})",
                    remedy=f"fix baseUrl in {self.config}, or set SSL_CERT_FILE to its certificate authority",
                )
            case WebProblem(kind="dns" | "connect"):
                return self.unreachable(error)
            case _:
                return ReplyBroken(f"the answer of {self.url} broke off: {error}", usage=usage)

    def unreachable(self, error: WebProblem) -> EnvironmentLacks:
        """Return the error for a server that no connection can be made to."""
        return EnvironmentLacks(
            f"{self.url} cannot be reached ({error})",
            remedy=f"start it, or fix baseUrl in {self.config}",
        )
