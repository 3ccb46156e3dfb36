"""``secret:NAME`` in a request becomes a value only towards a host that the policy binds it to, and
the value never comes back.

In a header it may stand anywhere (``Bearer secret:NAME``); in query, form and JSON only as a whole
value, so that a text from elsewhere that happens to hold the words is no way to get at the secret.
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
    """The secrets of one effect."""

    def __init__(self, rules: HostRules, config: Config, environment: Mapping[str, str]) -> None:
        self._rules = rules
        self._config = config
        self._environment = environment
        self.known = self._spellings()

    def are_in(self, text: str) -> bool:
        return INSIDE.search(text) is not None

    def travel(self, text: str, target: Target) -> bool:
        """Whether each secret that a header names may go to *target*."""
        return all(self._rules.binds(name, target) for name in INSIDE.findall(text))

    def put_into(self, text: str, target: Target) -> str:
        """A header's value with its secrets.

        Raises:
            WebProblem: kind *policy*. EnvironmentLacks: a secret has no source, or the source has
                no value.
        """
        return INSIDE.sub(lambda found: self._value(found[1], target), text)

    def put_whole(self, value: Any, target: Target) -> Any:
        """JSON data with each text that is ``secret:NAME`` and nothing else replaced; raises like
        ``put_into``.
        """
        if isinstance(value, str):
            found = INSIDE.fullmatch(value)
            return value if found is None else self._value(found[1], target)
        if isinstance(value, Mapping):
            return {key: self.put_whole(inner, target) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.put_whole(inner, target) for inner in value]
        return value

    def redact(self, value: Any) -> Any:
        return secrets.redact(value, self.known)

    def redact_bytes(self, data: bytes) -> bytes:
        for text, name in self.known.items():
            if len(text) >= secrets.MIN_CHARACTERS:
                data = data.replace(text.encode(), f"secret:{name}".encode())
        return data

    def _value(self, name: str, target: Target) -> str:
        if name not in self._rules.secrets:
            raise WebProblem(
                "policy",
                f'the policy binds secret:{name} to no host; add "secrets": {{"{name}": ["{target.authority}"]}} to "{self._rules.kind}" '
                "and add the bundle again",
            )
        if not self._rules.binds(name, target):
            clear = (
                "; over http only where the entry names the port" if target.scheme == "http" else ""
            )
            raise WebProblem(
                "policy",
                f"the policy does not bind secret:{name} to {target.scheme}://{target.authority}{clear}",
            )
        return secrets.secret_value(name, self._config, self._environment)

    def _spellings(self) -> dict[str, str]:
        """Every spelling in which a server may send back a secret of this policy, used in this
        request or not.
        """
        found: dict[str, str] = {}
        for name in self._rules.secrets:
            try:
                value = secrets.secret_value(name, self._config, self._environment)
            except EnvironmentLacks:
                continue  # told when it is needed
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
