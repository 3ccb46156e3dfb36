"""Secrets in web requests: ``secret:NAME`` is replaced by its value only for hosts that the policy
binds it to, and values are redacted from responses.

A header may contain it anywhere (``Bearer secret:NAME``). In query, form and JSON only a whole
value is replaced, so text of other origin that contains the words cannot reveal the secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.urls import Target
from uncaged_engine.services import secrets
from uncaged_engine.services.network import HostRules, WebProblem
from uncaged_engine.services.settings import Config

NAME = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?"
INSIDE = re.compile(rf"secret:({NAME})")


class Credentials:
    """Secrets of one effect. known: names by each spelling of a value."""

    def __init__(self, rules: HostRules, config: Config, environment: Mapping[str, str]) -> None:
        self._rules = rules
        self._config = config
        self._environment = environment
        self.known = self._spellings()

    def has_secret(self, text: str) -> bool:
        return INSIDE.search(text) is not None

    def may_send(self, text: str, target: Target) -> bool:
        """Return whether each secret that a header names may be sent to *target*."""
        return all(self._rules.binds(name, target) for name in INSIDE.findall(text))

    def fill_header(self, text: str, target: Target) -> str:
        """Return a header's value with its secrets filled in.

        Raises:
            WebProblem: kind *policy*, for a host that a secret is not bound to.
            EnvironmentLacks: a secret has no source, or the source has no value.
        """
        return INSIDE.sub(lambda found: self._value(found[1], target), text)

    def fill_data(self, value: Any, target: Target) -> Any:
        """Replace each text in JSON data that is ``secret:NAME`` and nothing else; raises like
        `fill_header`.
        """
        if isinstance(value, str):
            found = INSIDE.fullmatch(value)
            return value if found is None else self._value(found[1], target)
        if isinstance(value, Mapping):
            return {key: self.fill_data(inner, target) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.fill_data(inner, target) for inner in value]
        return value

    def redact(self, value: Any) -> Any:
        return secrets.redact(value, self.known)

    def redact_bytes(self, data: bytes) -> bytes:
        for text, name in self.known.items():
            if len(text) >= secrets.MIN_CHARACTERS:
                data = data.replace(text.encode(), f"secret:{name}".encode())
        return data

    def _value(self, name: str, target: Target) -> str:
        check_bound(self._rules, name, target)
        return secrets.secret_value(name, self._config, self._environment)

    def _spellings(self) -> dict[str, str]:
        """Return each spelling in which a server may send back a secret of the policy, even one
        that the request does not use.
        """
        found: dict[str, str] = {}
        for name in self._rules.secrets:
            try:
                value = secrets.secret_value(name, self._config, self._environment)
            except EnvironmentLacks:
                continue  # raised where it is used
            quoted = (quote(value), quote(value, ""), quote_plus(value))
            found |= dict.fromkeys(
                (
                    value,
                    *quoted,
                    json.dumps(value)[1:-1],
                    json.dumps(value, ensure_ascii=False)[1:-1],
                ),
                name,
            )
        return found


class UnfilledCredentials(Credentials):
    """Secrets of a request that is checked and not sent: each keeps its name."""

    def __init__(self, rules: HostRules) -> None:
        self._rules = rules
        self.known = {}

    def _value(self, name: str, target: Target) -> str:
        check_bound(self._rules, name, target)
        return f"{secrets.PREFIX}{name}"


def check_bound(rules: HostRules, name: str, target: Target) -> None:
    """Refuse a secret for a host that the policy does not bind it to; raises WebProblem."""
    if name not in rules.secrets:
        raise WebProblem(
            "policy",
            f'the policy binds secret:{name} to no host; add "secrets": {{"{name}": ["{target.authority}"]}} to "{rules.kind}" '
            "and add the bundle again",
        )
    if not rules.binds(name, target):
        clear = "; over http only where the entry names the port" if target.scheme == "http" else ""
        raise WebProblem(
            "policy",
            f"the policy does not bind secret:{name} to {target.scheme}://{target.authority}{clear}",
        )
