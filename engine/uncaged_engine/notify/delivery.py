"""Delivery of one notification: a command with the notification on its standard input, or a webhook
signed as Standard Webhooks (https://www.standardwebhooks.com) define it.

A delivery ends at its time limit, its output is bounded, and it is made once: nothing is repeated.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from uncaged_bundles.errors import UncagedError, os_problem
from uncaged_bundles.version import __version__

from ..door.effects import Cancel
from ..door.notifications import Notification
from ..network.problems import RequestCancelled, WebProblem
from ..settings.config import NOT_IN_CLEAR, Config, NotifySettings
from ..settings.secrets import redact, resolve

MAX_OUTPUT_BYTES = 4 << 10
GRACE_S = 2.0
SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of a secret's spelling, none itself
PLACES = re.compile(r"\{(title|message|event|subject|flow|nextStep)\}")
"""Places in a command's arguments."""


class NotDelivered(UncagedError):
    """A notification was not delivered, or its receiver reported an error."""


def deliver(
    notification: Notification,
    settings: NotifySettings,
    config: Config,
    environment: Mapping[str, str],
    cancel: Cancel | None = None,
) -> None:
    """Deliver a notification, once.

    Args:
        environment: the caller's variables: sources of secrets, and those of the command.
    Raises:
        NotDelivered: the command or the server failed, or took longer than the limit.
        EnvironmentLacks: a secret has no value.
    """
    body = json.dumps(notification.document()).encode()
    if settings.command:
        _run(
            settings, notification, body, config, environment=environment, cancel=cancel or Cancel()
        )
    else:
        _post(
            settings, notification, body, config, environment=environment, cancel=cancel or Cancel()
        )


def signature(secret: str, id: str, timestamp_s: int, body: bytes) -> str:
    """Return the value of the header `webhook-signature`.

    Args:
        secret: its bytes as UTF-8, or as Base64 behind ``whsec_``.
    """
    key = secret.encode()
    if secret.startswith(SECRET_PREFIX):
        with suppress(ValueError):
            key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    signed = hmac.digest(key, f"{id}.{timestamp_s}.".encode() + body, "sha256")
    return f"v1,{base64.b64encode(signed).decode()}"


def _run(
    settings: NotifySettings,
    notification: Notification,
    body: bytes,
    config: Config,
    *,
    environment: Mapping[str, str],
    cancel: Cancel,
) -> None:
    from ..processes.child import Child
    from ..processes.communicate import OutputBuffer, communicate

    argv: list[str] = []
    secrets: dict[str, str] = {}
    for word in settings.command:
        # a place is filled last: a message is a bundle's text, and names no secret
        resolved, used = resolve(word, config, environment)
        argv.append(str(resolved) if used else _filled(word, notification))
        secrets |= used
    stdout = OutputBuffer(max_bytes=MAX_OUTPUT_BYTES)
    stderr = OutputBuffer(max_bytes=MAX_OUTPUT_BYTES, keep_last=True)
    try:
        with Child.start(
            argv, directory=Path("/"), environment=config.for_agents(environment)
        ) as child:
            timed_out = communicate(
                child,
                stdin=body,
                stdout=stdout,
                stderr=stderr,
                deadline=time.monotonic() + settings.timeout_s,
                grace_s=GRACE_S,
                on_cancel=cancel.on_request,
            )
            code = child.end()
    except (OSError, ValueError) as exc:
        problem = os_problem(exc) if isinstance(exc, OSError) else str(exc)
        raise NotDelivered(f"the command of notify cannot be started: {problem}") from exc
    if timed_out:
        raise NotDelivered(f"the command of notify took longer than {settings.timeout_s:g} s")
    if code != 0:
        text = redact(bytes(stderr.data).decode("utf-8", "replace").strip(), secrets)
        raise NotDelivered(f"the command of notify ended with {code}{f': {text}' if text else ''}")


def _filled(word: str, notification: Notification) -> str:
    """Put the notification's values into the places of an argument."""
    values = {**notification.document(), "title": notification.title}
    return PLACES.sub(lambda place: str(values[place[1]]), word)


def _post(
    settings: NotifySettings,
    notification: Notification,
    body: bytes,
    config: Config,
    *,
    environment: Mapping[str, str],
    cancel: Cancel,
) -> None:
    import httpcore2

    from ..network.client import HttpClient
    from ..network.route import Route, proxy_for
    from ..network.target import read_target

    address, address_secrets = resolve(settings.url, config, environment)
    secret, secrets = resolve(settings.secret, config, environment)
    url = str(address)
    timestamp_s = notification.timestamp_ms // 1000
    signed = signature(str(secret), notification.id, timestamp_s, body)
    try:
        target = read_target(url)
        if target.is_in_clear:  # it is a secret's value, which config.yaml does not show
            raise NotDelivered(f"the webhook of notify: its address {NOT_IN_CLEAR}")
        headers = {
            "Host": target.authority,
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "User-Agent": f"uncaged-workflow/{__version__}",
            "webhook-id": notification.id,
            "webhook-timestamp": str(timestamp_s),
            "webhook-signature": signed,
        }
        client = HttpClient(Route.of(url, environment, proxy=proxy_for(url, environment)))
        try:
            end = client.session.begin(time.monotonic() + settings.timeout_s)
            with cancel.on_request(end):
                request = httpcore2.Request(
                    "POST", url, headers=list(headers.items()), content=body
                )
                status = client.send(request).status
        finally:
            client.close()
    except (WebProblem, RequestCancelled, ValueError, OSError) as exc:
        text = redact(str(exc) or "it was cancelled", {**secrets, **address_secrets})
        raise NotDelivered(f"the webhook of notify failed: {text}") from exc
    if not 200 <= status < 300:
        raise NotDelivered(f"the webhook of notify answered with status {status}")
