"""Reader of ``config.yaml``. Refuses unknown keys, duplicate keys and credentials in clear text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from uncaged_bundles.errors import DamagedError, UsageError
from uncaged_bundles.storage.document import load_yaml
from uncaged_bundles.urls import UrlError, read_target

from .config import (
    AgentSettings,
    CollisionSettings,
    Config,
    FlowSettings,
    LimitSettings,
    SearchSettings,
    SecretSource,
    Strategy,
)

CREDENTIAL_KEY = re.compile(r"(?i)(key|token|secret|password|passwd)$")


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
    history_characters: Annotated[int, Field(ge=1000)] = 60_000


class SearchSection(StrictSection):
    use: Literal["searxng"]
    url: str
    key: str | None = None


class CollisionSection(StrictSection):
    kind: Literal["scores", "flows"] = "scores"
    strategy: Strategy = "remembered-or-ask"
    order: list[str] = []
    several: Literal["priority", "abort", "ask"] = "priority"


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
    secrets: dict[str, SecretSection] = {}
    prices: dict[str, PriceSection] = {}
    environment: list[str] = []
    consent: list[str] = []
    test_command: str | None = None
    instructions: str = ""


def parse_config(data: bytes, path: Path) -> Config:
    """Check the bytes of a config file; relative paths in it are relative to its directory.

    Raises:
        UsageError: see ``config.load``.
    """
    try:
        raw = load_yaml(data, str(path))
    except DamagedError as exc:
        raise UsageError(str(exc)) from exc
    if raw is None:
        return Config(path=path)
    if not isinstance(raw, dict):
        raise UsageError(f"{path}: must be a mapping of settings, not {type(raw).__name__}")
    try:
        section = ConfigSection.model_validate(raw)
    except ValidationError as exc:
        raise UsageError("\n".join(f"{path}: {problem}" for problem in explain(exc))) from exc
    clear = (clear_credentials(raw.get(part, {}), part) for part in ("agents", "models", "search"))
    problems = [*dangling(section), *(problem for part in clear for problem in part)]
    if problems:
        raise UsageError("\n".join(f"{path}: {problem}" for problem in problems))
    return settle(section, path)


def explain(error: ValidationError) -> Iterator[str]:
    """Yield each problem with its dotted key, and for an unknown key the nearest known one."""
    for item in error.errors():
        where = ".".join(str(part) for part in item["loc"])
        if item["type"] in ("model_type", "dict_type"):
            yield f"{where}: must be a mapping of keys to values, not {item['input']!r}"
            continue
        if item["type"] != "extra_forbidden":
            yield (
                f"{where}: {item['msg']}, not {item['input']!r}"
                if item["type"] != "missing"
                else f"{where}: is missing"
            )
            continue
        known = known_keys(item["loc"])
        near = get_close_matches(str(item["loc"][-1]), known, n=1, cutoff=0.5)
        yield f"{where}: unknown key; " + (
            f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
        )


def known_keys(location: tuple[int | str, ...]) -> list[str]:
    sections: dict[str, type[StrictSection]] = {
        "collisions": CollisionSection,
        "flows": FlowSection,
        "limits": LimitsSection,
        "models": ModelSection,
        "prices": PriceSection,
        "search": SearchSection,
        "secrets": SecretSection,
    }
    section = sections.get(str(location[0]), ConfigSection) if len(location) > 1 else ConfigSection
    return [info.alias or name for name, info in section.model_fields.items()]


def dangling(section: ConfigSection) -> Iterator[str]:
    """Yield problems that no schema finds: secrets with no source or two, invalid variable names,
    unknown models.
    """
    for name, source in section.secrets.items():
        if [source.env, source.file, source.keyring].count(None) != 2:
            yield f"secrets.{name}: give exactly one of env (a variable's name), file (a path) and keyring (SERVICE/USER)"
        service, _, user = (source.keyring or "-/-").rpartition("/")
        if not (service.strip() and user.strip() and (service + user).isprintable()):
            yield f"secrets.{name}.keyring: must be SERVICE/USER, as the keyring has it, not {source.keyring!r}"
    for index, variable in enumerate(section.environment):
        if not variable or "=" in variable or "\0" in variable:
            yield f"environment.{index}: {variable!r} is not a variable's name"
    if section.search is not None:
        try:
            read_target(section.search.url)
        except UrlError as exc:
            yield f"search.url: {exc}"
    for key, chosen in (("model", section.model), ("extractor", section.extractor)):
        if chosen is not None and chosen not in section.models:
            near = (
                get_close_matches(chosen, section.models, n=3) or sorted(section.models) or ["none"]
            )
            yield f"{key}: there is no model {chosen!r} under models (there are: {', '.join(near)})"


def clear_credentials(value: object, where: str) -> Iterator[str]:
    """Yield each credential in clear text; ``secret:NAME`` is required, since config files get
    copied, shown and committed.
    """
    if not isinstance(value, Mapping):
        return
    for key, inner in value.items():
        if (
            isinstance(inner, str)
            and CREDENTIAL_KEY.search(str(key))
            and not inner.startswith("secret:")
        ):
            yield f"{where}.{key}: a credential does not belong here; write secret:NAME, and under secrets where NAME comes from"
        yield from clear_credentials(inner, f"{where}.{key}")


def settle(section: ConfigSection, path: Path) -> Config:
    limits = section.limits
    return Config(
        path=path,
        agents={
            name: AgentSettings(use=agent.use, settings=agent.model_extra or {})
            for name, agent in section.agents.items()
        },
        agent=section.agent,
        roles=section.roles,
        models={
            name: AgentSettings(
                use=model.use,
                settings=model.model_dump(
                    by_alias=True, exclude={"use"}, exclude_unset=True, exclude_none=True
                ),
            )
            for name, model in section.models.items()
        },
        model=section.model,
        extractor=section.extractor,
        flows={name: FlowSettings(**flow.model_dump()) for name, flow in section.flows.items()},
        limits=LimitSettings(
            max_rounds=limits.max_rounds,
            max_steps=limits.max_steps,
            agents=limits.agents,
            max_cost=limits.max_cost,
            max_tokens=limits.max_tokens,
            max_seconds=limits.max_seconds,
            max_journal_bytes=limits.max_journal_bytes,
            bundle_s=limits.bundle_seconds,
            agent_s=limits.agent_seconds,
            history_chars=limits.history_characters,
        ),
        sandbox=section.sandbox,
        search=None if section.search is None else SearchSettings(**section.search.model_dump()),
        collisions=CollisionSettings(
            kind=section.collisions.kind,
            strategy=section.collisions.strategy,
            order=tuple(section.collisions.order),
            several=section.collisions.several,
        ),
        secrets={name: source_of(source, path.parent) for name, source in section.secrets.items()},
        prices={
            name: price.model_dump(exclude_none=True) for name, price in section.prices.items()
        },
        environment=tuple(section.environment),
        consent=tuple(section.consent),
        test_command=section.test_command,
        instructions=section.instructions,
    )


def source_of(section: SecretSection, directory: Path) -> SecretSource:
    """Return a secret's source. A keyring service's name may contain slashes, a user's may not."""
    if section.keyring is not None:
        service, _, user = section.keyring.rpartition("/")
        return SecretSource(keyring=(service, user))
    return SecretSource(
        env=section.env,
        file=None if section.file is None else directory / Path(section.file).expanduser(),
    )
