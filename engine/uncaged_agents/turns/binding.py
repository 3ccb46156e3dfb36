"""Binding of a role to its agent: the agent that the start record names, with its settings and the
secrets in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.door.effects import EffectContext
from uncaged_engine.services import secrets
from uncaged_engine.services.settings import NOTHING
from uncaged_models.settings import with_key

from ..choice import configured_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBinding:
    """Agent of a role. settings: with resolved secrets. known: these secrets, value to name."""

    name: str
    use: str
    settings: Mapping[str, object]
    known: Mapping[str, str]

    def redacted(self, fields: Mapping[str, object]) -> dict[str, object]:
        """Return *fields* without the agent's secrets."""
        return cast("dict[str, object]", secrets.redact(dict(fields), self.known))

    def clean(self, text: str) -> str:
        """Return *text* without the agent's secrets."""
        return str(secrets.redact(text, self.known))


def binding_of(role: str, context: EffectContext) -> AgentBinding:
    """Return the binding of a role: the agent in the start record, with the settings that the
    config has for it now, as a person may have fixed them.

    Raises:
        EnvironmentLacks: the thread was started without an agent for the role.
    """
    agents = cast("Mapping[str, Mapping[str, object]]", context.start.get("agents", {}))
    others = cast("Mapping[str, Mapping[str, object]]", agents.get("roles", {}))
    bound = others.get(role) or agents.get("default")
    if bound is None:
        raise EnvironmentLacks(
            f"thread {context.thread_id} was started without an agent for {role!r}; run it again with --agent"
        )
    name, use = str(bound["name"]), str(bound["use"])
    settings = cast("Mapping[str, object]", bound.get("settings", NOTHING))
    configured = context.config.agents.get(name)
    if configured is not None and configured.use == use:
        options = cast("Mapping[str, object]", bound.get("options", NOTHING))
        settings = {**configured_settings(name, context.config, context.store.root), **options}
    settings = with_key(use, settings)
    resolved, known = secrets.resolve(settings, context.config, context.environment)
    return AgentBinding(
        name=name, use=use, settings=cast("Mapping[str, object]", resolved), known=known
    )
