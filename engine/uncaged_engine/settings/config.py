"""Configuration of a store as plain dataclasses, with their defaults.

``config_file`` checks ``config.yaml`` with pydantic; it is loaded only when that file has content.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args

from uncaged_bundles.records import dataclass, field

from .variables import CARRIED, KEY_VARIABLES, KEYRING, observed_variables, select

NOTHING: Mapping[str, object] = MappingProxyType({})

KEYS = "keys"
"""The directory of a store that holds keys, one file each, for its owner only."""

NOT_IN_CLEAR = "must begin with https://, or be an address of this machine"

TEXT_PLACE = "{text}"
"""The part of a search provider's address template that the words take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Entry under ``agents`` or ``models``. use: the kind. settings: of that kind, ``secret:NAME``
    still unresolved.
    """

    use: str
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSettings:
    """Overrides for one flow; None keeps the store's value."""

    agent: str | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    max_rounds: int | None = None
    max_steps: int | None = None
    test_command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """Default limits of a thread.

    bundle_s: time limit of a generator's computation between two effects. agent_s: time limit of
    one answer of an agent.
    agents: number of agents that work at once, over all stores of the user on this machine.
    worker_s: after so long without a sign of life another worker of a shared store counts as dead.
    max_cost: US dollars per thread.
    """

    max_rounds: int = 10
    max_steps: int = 10_000
    bundle_s: float = 10.0
    agent_s: float = 3600.0
    worker_s: float = 60.0
    agents: int = 4
    max_cost: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    max_journal_bytes: int = 1 << 30
    history_chars: int = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """Service of the search effect. use: its kind. key: ``secret:NAME``, for a service that
    requires a key.
    """

    use: str
    url: str
    key: str | None = None


Strategy = Literal["first-match", "score-rank", "priority", "ask", "remembered-or-ask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollisionSettings:
    """Decision among several readings of one sentence.

    kind: readings collide if their scores are equal, or if they call other flows. order: packs, the
    preferred one first. several: the decision inside a sentence of several calls. packs: the
    decision among packs that similarity cannot tell apart, before a model translates. threshold:
    their difference, as a part of the best score.
    """

    kind: Literal["scores", "flows"] = "scores"
    strategy: Strategy = "remembered-or-ask"
    order: tuple[str, ...] = ()
    several: Literal["priority", "abort", "ask"] = "priority"
    packs: Literal["together", "ask"] = "together"
    threshold: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerSettings:
    """MCP server whose tools become flows: a program that is started, or an address.

    command: the program and its arguments. environment: its further variables; headers: of requests
    to the address; both with ``secret:NAME`` unresolved. trusted: tools that a sentence may call
    without consent; None for all of them. timeout_s: of one call.
    """

    command: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    trusted: tuple[str, ...] | None = ()
    timeout_s: float = 60.0

    def trusts(self, tool: str) -> bool:
        """Return whether the person vouches for a tool."""
        return self.trusted is None or tool in self.trusted


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretSource:
    """Source of a secret's value: a variable of the caller's environment, a file, or the system's
    keyring (service, user).
    """

    env: str | None = None
    file: Path | None = None
    keyring: tuple[str, str] | None = None

    def __str__(self) -> str:
        """Return the source in words, never the value."""
        if self.keyring is not None:
            return f"the system keyring, {'/'.join(self.keyring)}"
        return f"the variable {self.env}" if self.env is not None else f"the file {self.file}"


NotifyEvent = Literal[
    "waiting", "failed", "unknown", "limit", "interrupted", "proposal", "schedule"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifySettings:
    """How a person is notified, and of what: by a command, or by a webhook.

    command: the program and its arguments, with the places of `notify.delivery`. url, secret: of
    the webhook, ``secret:NAME`` unresolved. timeout_s: of one delivery.
    """

    command: tuple[str, ...] = ()
    url: str | None = None
    secret: str | None = None
    events: tuple[NotifyEvent, ...] = get_args(NotifyEvent)
    timeout_s: float = 10.0


HealMode = Literal["off", "propose", "apply"]
CaptureMode = Literal["off", "propose"]
Resolver = Literal["search", "keyword", "encyclopedia", "history"]
"""Ways to find the page that a name means, in the order in which they are tried."""
BrowserPart = Literal["browse", "lookup", "discovery", "flows"]
"""browse: flows in the session's own tabs. lookup: names, searches and questions of flows.
discovery: actions that pages offer, as sentences. flows: web flows in contexts of their own.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSettings:
    """Browser of browser sessions. program: None is the first that is found. sandbox: its own; off
    is a person's choice. port: of loopback, where the extension connects. heal: whether a web flow
    goes on with an element that is like one that it does not find, and proposes (``apply``:
    accepts) a version with it.
    resolvers: those that are on; sessions note the pages that they open only if ``history`` is.
    search: name of the search provider. providers: address templates by name, beside the usual
    ones. encyclopedia: address template of an article. keywords: addresses by name. knowledge:
    hosts whose pages are indexed when a session opens them. parts: those that are on.
    """

    program: str | None = None
    sandbox: bool = True
    port: int = 8811
    heal: HealMode = "propose"
    resolvers: tuple[Resolver, ...] = ("search", "keyword", "encyclopedia")
    search: str = "duckduckgo"
    providers: Mapping[str, str] = field(default_factory=dict)
    encyclopedia: str = "https://en.wikipedia.org/wiki/{text}"
    keywords: Mapping[str, str] = field(default_factory=dict)
    knowledge: tuple[str, ...] = ()
    parts: tuple[BrowserPart, ...] = ("browse", "lookup", "flows")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Content of ``config.yaml``; the defaults apply to a store without that file.

    agent: name of the default agent; None selects one. roles, flows: overrides of it.
    models: models of the llm effect by name. model: its default. extractor: the model that extracts
    data from an agent's answer when the agent cannot.
    environment: further variables of the caller that agents may see. consent: coding programs on
    PATH that a person accepted (or declined, with ``not`` before the name). instructions: text
    that a model gets with each sentence. embeddings: the model that ranks flows by similarity.
    span_hosts: hosts that get the trace context of an `http` effect.
    capture: whether a flow is proposed of what the agent of a successful thread did.
    store: address of the shared store to use instead of the directory; it may have a password.
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
    collisions: CollisionSettings = field(default_factory=CollisionSettings)
    mcp_servers: Mapping[str, McpServerSettings] = field(default_factory=dict)
    embeddings: AgentSettings | None = None
    browser: BrowserSettings = field(default_factory=BrowserSettings)
    serve_port: int = 8810
    span_hosts: tuple[str, ...] = ()
    secrets: Mapping[str, SecretSource] = field(default_factory=dict)
    prices: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    environment: tuple[str, ...] = ()
    consent: tuple[str, ...] = ()
    test_command: str | None = None
    instructions: str = ""
    capture: CaptureMode = "off"
    notify: NotifySettings | None = None
    store: str | None = None

    def carried(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that a client sends to the worker: those of child processes, the
        sources of secrets, and those of observers.
        """
        sources = [source.env for source in self.secrets.values() if source.env is not None]
        leading = (
            KEYRING if any(source.keyring is not None for source in self.secrets.values()) else ()
        )
        wanted = (*CARRIED, *self.environment, *KEY_VARIABLES, *sources, *leading)
        return {**observed_variables(environment), **select(environment, wanted)}

    def for_agents(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of an agent's process; a secret only if ``environment`` names its
        variable too.
        """
        return select(environment, (*CARRIED, *self.environment))
