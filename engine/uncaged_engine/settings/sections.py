"""Sections of ``config.yaml`` as pydantic models: their keys, types and defaults."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel
from uncaged_bundles.hosts import read_entry

from .config import BrowserPart, CaptureMode, HealMode, NotifyEvent, Resolver, Strategy


def host_entry(text: str) -> str:
    """Check an entry of a list of hosts."""
    read_entry(text)
    return text


class StrictSection(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


class AgentSection(StrictSection):
    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    use: str


class ModelSection(StrictSection):
    use: Literal["anthropic", "openai"]
    model: str | None = None
    base_url: str | None = None
    key: str | None = None
    max_tokens: Annotated[int | None, Field(ge=1)] = None
    structured: bool | None = None
    options: dict[str, object] = {}


class FlowSection(StrictSection):
    agent: str | None = None
    roles: dict[str, str] = {}
    max_rounds: Annotated[int | None, Field(ge=0)] = None
    max_steps: Annotated[int | None, Field(ge=0)] = None
    test_command: str | None = None


class LimitsSection(StrictSection):
    max_rounds: Annotated[int, Field(ge=0)] = 10
    max_steps: Annotated[int, Field(ge=0)] = 10_000
    agents: Annotated[int, Field(ge=1, le=1000)] = 4
    max_cost: Annotated[float, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    max_seconds: Annotated[float, Field(ge=0)] | None = None
    max_journal_bytes: Annotated[int, Field(ge=0)] = 1 << 30
    bundle_seconds: Annotated[float, Field(gt=0)] = 10.0
    agent_seconds: Annotated[float, Field(gt=0)] = 3600.0
    worker_seconds: Annotated[float, Field(ge=3, le=3600)] = 60.0
    history_characters: Annotated[int, Field(ge=1000)] = 60_000


class SearchSection(StrictSection):
    use: Literal["searxng"]
    url: str
    key: str | None = None


class EmbeddingSection(StrictSection):
    use: Literal["openai"] = "openai"
    model: str
    base_url: str | None = None
    key: str | None = None
    options: dict[str, object] = {}


class McpServerSection(StrictSection):
    """Entry under ``mcpServers``, with the keys that the documentation of servers uses."""

    command: str | None = None
    args: list[str] = []
    env: dict[str, str] = {}
    url: str | None = None
    headers: dict[str, str] = {}
    trusted: bool | list[str] = False
    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0


class CollisionSection(StrictSection):
    kind: Literal["scores", "flows"] = "scores"
    strategy: Strategy = "remembered-or-ask"
    order: list[str] = []
    several: Literal["priority", "abort", "ask"] = "priority"
    packs: Literal["together", "ask"] = "together"
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.05


class BrowserSection(StrictSection):
    program: str | None = None
    sandbox: Literal["on", "off"] = "on"
    port: Annotated[int, Field(ge=1, le=65_535)] = 8811
    heal: HealMode = "propose"
    resolvers: list[Resolver] = ["search", "keyword", "encyclopedia"]
    search: str = "duckduckgo"
    providers: dict[str, str] = {}
    encyclopedia: str = "https://en.wikipedia.org/wiki/{text}"
    keywords: dict[str, str] = {}
    knowledge: list[str] = []
    parts: list[BrowserPart] = ["browse", "lookup", "flows"]


class WebhookSection(StrictSection):
    url: str
    secret: str


class NotifySection(StrictSection):
    command: list[str] | None = None
    webhook: WebhookSection | None = None
    events: list[NotifyEvent] = list(get_args(NotifyEvent))
    timeout_seconds: Annotated[float, Field(gt=0, le=60)] = 10.0


class ServeSection(StrictSection):
    port: Annotated[int, Field(ge=1, le=65_535)] = 8810


class SpansSection(StrictSection):
    """Entry ``spans``; hosts are written as in a policy."""

    hosts: list[Annotated[str, AfterValidator(host_entry)]] = []


class RatesSection(StrictSection):
    """Prices in US dollars per million tokens."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]
    cached: Annotated[float, Field(ge=0)] | None = None
    stored: Annotated[float, Field(ge=0)] | None = None


class AboveSection(RatesSection):
    """Prices of requests with more input than *tokens*."""

    tokens: Annotated[int, Field(ge=1)]


class PriceSection(RatesSection):
    above: AboveSection | None = None


class SecretSection(StrictSection):
    env: str | None = None
    file: str | None = None
    keyring: str | None = None


class ConfigSection(StrictSection):
    agents: dict[str, AgentSection] = {}
    agent: str | None = None
    roles: dict[str, str] = {}
    flows: dict[str, FlowSection] = {}
    models: dict[str, ModelSection] = {}
    model: str | None = None
    extractor: str | None = None
    limits: LimitsSection = LimitsSection()
    sandbox: Literal["auto", "bubblewrap", "landlock"] = "auto"
    search: SearchSection | None = None
    collisions: CollisionSection = CollisionSection()
    mcp_servers: dict[str, McpServerSection] = {}
    embeddings: EmbeddingSection | None = None
    browser: BrowserSection = BrowserSection()
    serve: ServeSection = ServeSection()
    spans: SpansSection = SpansSection()
    secrets: dict[str, SecretSection] = {}
    prices: dict[str, PriceSection] = {}
    environment: list[str] = []
    consent: list[str] = []
    test_command: str | None = None
    instructions: str = ""
    capture: CaptureMode = "off"
    store: str | None = None
    notify: NotifySection | None = None
