"""Secrets of a browser effect: resolved for the session, and redacted from what comes back."""

from __future__ import annotations

from typing import Any

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.door.effects import EffectContext
from uncaged_engine.services import secrets

from ..operations import Operation
from ..secrets import BoundSecrets, secrets_named
from .limits import BrowserLimits

__all__ = ["EffectSecrets"]


class EffectSecrets:
    """Secrets that a policy binds to hosts."""

    def __init__(self, limits: BrowserLimits, context: EffectContext) -> None:
        self._limits = limits
        self._context = context

    def for_operation(self, operation: Operation) -> BoundSecrets:
        """Return the secret that an operation types.

        Raises:
            EnvironmentLacks: it has no source, or the source has no value.
        """
        return secrets_named(
            [getattr(operation, "text", "")], self._limits.secrets.get, self._value
        )

    def redact(self, value: Any) -> Any:
        """Replace the values of the policy's secrets in what a page shows."""
        known = {}
        for name in self._limits.secrets:
            try:
                found = self._value(name)
            except EnvironmentLacks:
                continue  # raised where it is used
            known[found] = name
        return secrets.redact(value, known) if known else value

    def _value(self, name: str) -> str:
        return secrets.secret_value(name, self._context.config, self._context.environment)
