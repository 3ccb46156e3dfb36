"""A request is followed to its last answer, and each hop is checked as if the bundle had asked for
it.

Rule 1: no hop begins before the policy, the address and the secrets of that hop were checked.
Rule 2: what a bundle said in confidence (Authorization, Cookie, a header with a secret) does not
follow it to another origin.
Rule 3: there is one deadline for all hops together, and one limit for what is kept of the last
answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from uncaged_bundles.addresses import classify, literal
from uncaged_bundles.urls import Target
from uncaged_bundles.version import __version__
from uncaged_engine.door.effects import Cancel
from uncaged_engine.services.network import (
    HostRules,
    Route,
    StaleConnection,
    WebProblem,
    proxy_for,
    redirect_target,
)

from .client import Clients
from .credentials import Credentials
from .decoding import ACCEPTED, Unpacker
from .request import REPEATABLE, TYPES, Request, header_bytes

if TYPE_CHECKING:
    import httpcore2

MAX_REDIRECTS = 10
REDIRECTS = frozenset({301, 302, 303, 307, 308})
CONFIDENTIAL = frozenset({"authorization", "cookie"})
OF_A_BODY = frozenset({"content-type", "content-encoding", "content-language", "content-location"})
AGENT = f"uncaged-workflow/{__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeLimits:
    """max_bytes: of a body, unpacked. total_s: for all hops together."""

    max_bytes: int
    total_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """The last answer. headers: lower-case names. truncated: the body of an answer that is no
    success was cut at the limit.
    """

    target: Target
    status: int
    headers: Mapping[str, str]
    body: bytes
    truncated: bool


@dataclass(slots=True, kw_only=True)
class Session:
    """What all hops of an exchange share. environment: the caller's, for proxies and certificates.
    has_sent: a server may know of it.
    """

    rules: HostRules
    credentials: Credentials
    limits: ExchangeLimits
    clients: Clients
    cancel: Cancel
    environment: Mapping[str, str]
    has_sent: bool = False

    def exchange(self, request: Request) -> Received:
        """Send *request* and follow where it is led.

        Raises:
            WebProblem: whatever kept it from an answer. Stopped: cancelled. EnvironmentLacks: a
                secret has no value.
        """
        deadline_s = time.monotonic() + self.limits.total_s
        first = request.target
        request = self._with_query(request)
        for hop in range(MAX_REDIRECTS + 1):
            try:
                received = self._hop(request, deadline_s)
            except WebProblem as exc:
                raise exc if hop == 0 else led(first, f"to {request.target.url}", exc) from exc
            location = received.headers.get("location")
            if not request.follow or received.status not in REDIRECTS or location is None:
                return received
            try:
                request = redirected(
                    request,
                    received.status,
                    redirect_target(request.target, location),
                    self.credentials,
                )
            except WebProblem as exc:
                raise led(first, "to where no request goes", exc) from exc
        raise WebProblem(
            "redirects",
            f"redirected more than {MAX_REDIRECTS} times, at last to {request.target.url}",
        )

    def _with_query(self, request: Request) -> Request:
        self.rules.check(request.target)
        pairs = [
            (name, str(self.credentials.put_whole(value, request.target)))
            for name, value in request.query
        ]
        return replace(request, target=request.target.with_query(pairs), query=())

    def _hop(self, request: Request, deadline_s: float) -> Received:
        target = request.target
        self.rules.check(target)
        prepared = prepare(request, self.credentials)
        try:
            return self._send(request, prepared, deadline_s)
        except StaleConnection:
            # The server gave up a connection just as it was used again. Only what may be done twice
            # is sent once more.
            if request.method not in REPEATABLE:
                raise
        return self._send(request, prepared, deadline_s)

    def _send(self, request: Request, prepared: httpcore2.Request, deadline_s: float) -> Received:
        with self.clients.borrowed(self._route(request.target), deadline_s, self.cancel) as client:
            self.has_sent = True
            answer = client.send(prepared)
            try:
                return self._receive(request, answer, client.content(prepared, answer))
            finally:
                answer.close()

    def _receive(
        self, request: Request, answer: httpcore2.Response, content: Iterable[bytes]
    ) -> Received:
        headers = joined(answer.headers)
        truncated, body = False, b""
        if not (request.follow and answer.status in REDIRECTS and "location" in headers):
            unpacker = Unpacker(headers.get("content-encoding", ""), self.limits.max_bytes)
            for chunk in content:
                unpacker.feed(chunk)
                if unpacker.is_full:
                    break
            truncated, body = unpacker.is_full, unpacker.finish()
        if truncated and 200 <= answer.status < 300:
            raise WebProblem(
                "too-large",
                f"the answer is larger than {self.limits.max_bytes} bytes; maxBytes in the policy of {self.rules.kind!r} sets the limit",
            )
        return Received(
            target=request.target,
            status=answer.status,
            headers=headers,
            body=body,
            truncated=truncated,
        )

    def _route(self, target: Target) -> Route:
        return Route.of(target.url, self.environment, proxy=self._proxy(target), rules=self.rules)

    def _proxy(self, target: Target) -> str | None:
        """Return the caller's proxy for *target*. It looks names up by itself, so no address can be
        checked here.
        """
        address = literal(target.host)
        if target.host == "localhost" or (
            address is not None and classify(address).reach != "public"
        ):
            return None
        proxy = proxy_for(target.url, self.environment)
        if proxy is not None and self.rules.hosts is None:
            raise WebProblem(
                "policy",
                f'behind a proxy, where addresses cannot be checked, the policy has to name its hosts; add "{target.authority}" to them',
            )
        return proxy


def prepare(request: Request, credentials: Credentials) -> httpcore2.Request:
    """One hop as it goes on the wire, its secrets put in."""
    import httpcore2

    target = request.target
    headers = [(b"Host", target.authority.encode()), (b"Accept-Encoding", ACCEPTED.encode())]
    headers += [
        header_bytes(name, credentials.put_into(value, target)) for name, value in request.headers
    ]
    usual = {
        "User-Agent": AGENT,
        "Accept": "*/*",
        **({"Content-Type": TYPES[request.body.form]} if request.body is not None else {}),
    }
    headers += [
        header_bytes(name, value) for name, value in usual.items() if not request.has(name.lower())
    ]
    content = request.body.bytes_for(target, credentials) if request.body is not None else None
    if content is not None or request.method in ("POST", "PUT", "PATCH"):
        headers.append((b"Content-Length", b"%d" % len(content or b"")))
    url = httpcore2.URL(
        scheme=target.scheme, host=target.host, port=target.port, target=target.path
    )
    return httpcore2.Request(request.method, url, headers=headers, content=content)


def redirected(request: Request, status: int, target: Target, credentials: Credentials) -> Request:
    """The request that a redirect asks for."""
    method, body, headers = request.method, request.body, list(request.headers)
    if (status == 303 and method not in ("GET", "HEAD")) or (
        status in (301, 302) and method == "POST"
    ):
        method, body = "GET", None
        headers = [
            (name, value)
            for name, value in headers
            if name.lower() not in OF_A_BODY and name.lower() != "idempotency-key"
        ]
    if target.origin != request.target.origin:
        headers = [
            (name, value) for name, value in headers if follows(name, value, target, credentials)
        ]
    return replace(request, method=method, target=target, headers=tuple(headers), body=body)


def led(first: Target, where: str, problem: WebProblem) -> WebProblem:
    """A problem with how it came about; what would be a slip of the bundle's is one of the server's
    here.
    """
    kind = "redirects" if problem.kind == "effect" else problem.kind
    return WebProblem(
        kind, f"redirected from {first.scheme}://{first.authority} {where}: {problem}"
    )


def follows(name: str, value: str, target: Target, credentials: Credentials) -> bool:
    """Whether a header goes along to another origin."""
    if credentials.are_in(value):
        return credentials.travel(value, target)
    return name.lower() not in CONFIDENTIAL


def joined(headers: Sequence[tuple[bytes, bytes]]) -> dict[str, str]:
    """Lower-case names; what stands several times is joined."""
    found: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found
