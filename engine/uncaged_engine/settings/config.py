"""What a person set for all flows of a store is known before anything runs, and costs nothing when nothing was set.

The values live here as plain dataclasses; ``config_file`` checks ``config.yaml`` with pydantic, and only when that file says something.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from uncaged_bundles.records import dataclass, field

from .variables import CARRIED, KEY_VARIABLES, KEYRING, select

NOTHING: Mapping[str, object] = MappingProxyType({})

KEYS = "keys"
"""The directory of a store that holds keys, one file each, for its owner only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """One entry under ``agents`` or ``models``: what to use, and its own settings (``secret:NAME`` still unresolved)."""

    use: str
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSettings:
    """What differs for one flow."""

    agent: str | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    max_rounds: int | None = None
    max_steps: int | None = None
    test_command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """bundle_s: how long a generator may compute between two effects. agent_s: how long one answer of an agent may take.
    agents: how many of them work at once, over all stores of the user on this machine. max_cost: US dollars per thread."""

    max_rounds: int = 10
    max_steps: int = 10_000
    bundle_s: float = 10.0
    agent_s: float = 3600.0
    agents: int = 4
    max_cost: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    max_journal_bytes: int = 1 << 30
    history_chars: int = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """What the search effect asks. use: the kind of service. key: ``secret:NAME``, for one that wants a key."""

    use: str
    url: str
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretSource:
    """Where a secret's value comes from: a variable of the caller's environment, a file, or the system's keyring (service, user)."""

    env: str | None = None
    file: Path | None = None
    keyring: tuple[str, str] | None = None

    def __str__(self) -> str:
        """Words for people; never the value."""
        if self.keyring is not None:
            return f"the system keyring, {'/'.join(self.keyring)}"
        return f"the variable {self.env}" if self.env is not None else f"the file {self.file}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All of ``config.yaml``; the defaults are what a store without that file gets.

    agent: name of the default agent, or None to have one chosen. roles, flows: exceptions from it.
    models: what the llm effect may ask, by name. model: the one that it asks when it names none. extractor: the one that takes data out
    of an agent's answer when the agent cannot.
    environment: further variables of the caller that agents may see. consent: coding programs on PATH that a person said yes to
    (or no, with ``not`` before the name).
    """

    path: Path | None = None
    agents: Mapping[str, AgentSettings] = field(default_factory=dict)
    agent: str | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    flows: Mapping[str, FlowSettings] = field(default_factory=dict)
    models: Mapping[str, AgentSettings] = field(default_factory=dict)
    model: str | None = None
    extractor: str | None = None
    limits: LimitSettings = field(default_factory=LimitSettings)
    keys: Path | None = field(default=None, compare=False)
    sandbox: Literal["auto", "bubblewrap", "landlock"] = "auto"
    search: SearchSettings | None = None
    secrets: Mapping[str, SecretSource] = field(default_factory=dict)
    prices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    environment: tuple[str, ...] = ()
    consent: tuple[str, ...] = ()
    test_command: str | None = None

    def carried(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return what a client sends to the worker: what children may see, and the variables that secrets come from."""
        sources = [source.env for source in self.secrets.values() if source.env is not None]
        leading = KEYRING if any(source.keyring is not None for source in self.secrets.values()) else ()
        return select(environment, (*CARRIED, *self.environment, *KEY_VARIABLES, *sources, *leading))

    def for_agents(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return what an agent's process may see; a secret is not among it unless ``environment`` names its variable too."""
        return select(environment, (*CARRIED, *self.environment))
