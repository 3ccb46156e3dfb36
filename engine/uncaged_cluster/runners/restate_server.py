"""HTTP client of a Restate server: its admin API and its ingress."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import httpx2
from uncaged_bundles.records import dataclass

from ..problems import RunnerLacks
from .restate_choice import RestateAddress

HANDLER = "drive"
TIMEOUT_S = 10.0
MOST_SHOWN = 300
INVOCATIONS = """
SELECT id, idempotency_key FROM sys_invocation
WHERE target_service_name = '$service' AND status <> 'completed'
"""
"""Names of services are ours: without a quotation mark."""
OLDEST_VERSION = (1, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """An invocation that has not ended. key: its idempotency key."""

    id: str
    key: str


class RestateServer:
    """A server, of which each call may fail.

    Each method raises:
        RunnerLacks: it does not answer, or refuses.
    """

    def __init__(self, address: RestateAddress) -> None:
        self._address = address
        self._client = httpx2.Client(timeout=TIMEOUT_S)

    def require_version(self) -> None:
        """Refuse a server that is older than `OLDEST_VERSION`."""
        version = str(self._field(self._admin("GET", "/version"), "version"))
        numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        if numbers < OLDEST_VERSION:
            oldest = ".".join(map(str, OLDEST_VERSION))
            raise RunnerLacks(
                f"{self._address.admin}: this is Restate {version or 'of no version'}, and {oldest} or newer is needed"
            )

    def register(self, uri: str) -> str:
        """Register what is served at *uri*, in the place of what was there; return the deployment's
        id.
        """
        done = self._admin("POST", "/deployments", {"uri": uri, "force": True})
        return str(self._field(done, "id"))

    def remove(self, deployment: str) -> None:
        """Remove a deployment, if it is there."""
        self._admin("DELETE", f"/deployments/{deployment}?force=true", allowed=(404,))

    def send(self, service: str, key: str, body: Mapping[str, object]) -> None:
        """Have a handler called once for each key; durable when this returns."""
        url = f"{self._address.ingress}/{service}/{HANDLER}/send"
        self._request("POST", url, body, headers={"idempotency-key": key})

    def invocations(self, service: str) -> list[Invocation]:
        """Return the invocations of a service that have not ended."""
        query = INVOCATIONS.replace("$service", service)
        headers = {"accept": "application/json"}
        done = self._request("POST", f"{self._address.admin}/query", {"query": query}, headers)
        return [
            Invocation(id=str(row["id"]), key=str(row.get("idempotency_key") or ""))
            for row in self._field(done, "rows")
        ]

    def kill(self, invocation: str) -> None:
        """End an invocation, if it has not ended."""
        self._admin("PATCH", f"/invocations/{invocation}/kill", allowed=(404, 409))

    def close(self) -> None:
        self._client.close()

    def _field(self, done: httpx2.Response, name: str) -> Any:
        """Return a field of an answer."""
        try:
            return done.json()[name]
        except (ValueError, KeyError, TypeError) as exc:
            raise RunnerLacks(
                f"{done.url} is not Restate's; name the URL of its admin API with `store dispatcher ADDRESS --restate URL`"
            ) from exc

    def _admin(
        self,
        method: str,
        path: str,
        body: Mapping[str, object] | None = None,
        *,
        allowed: Collection[int] = (),
    ) -> httpx2.Response:
        return self._request(method, f"{self._address.admin}{path}", body, allowed=allowed)

    def _request(
        self,
        method: str,
        url: str,
        body: Mapping[str, object] | None,
        headers: Mapping[str, str] | None = None,
        *,
        allowed: Collection[int] = (),
    ) -> httpx2.Response:
        try:
            done = self._client.request(method, url, json=body, headers=headers)
        except httpx2.HTTPError as exc:
            raise RunnerLacks(
                f"Restate does not answer at {url} ({exc}); check that its server runs there"
            ) from exc
        if done.is_error and done.status_code not in allowed:
            raise RunnerLacks(
                f"Restate refuses {method} {url}: {done.status_code} {done.text[:MOST_SHOWN]}"
            )
        return done
