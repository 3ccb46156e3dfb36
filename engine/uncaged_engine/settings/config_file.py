"""Reader of ``config.yaml``. Refuses unknown keys, duplicate keys and credentials in clear text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError
from uncaged_bundles.errors import DamagedError, UsageError
from uncaged_bundles.storage.document import load_yaml
from uncaged_bundles.urls import UrlError, read_target

from .config import (
    NOT_IN_CLEAR,
    TEXT_PLACE,
    AgentSettings,
    BrowserSettings,
    CollisionSettings,
    Config,
    FlowSettings,
    LimitSettings,
    McpServerSettings,
    NotifySettings,
    SearchSettings,
    SecretSource,
)
from .secrets import PREFIX
from .sections import (
    BrowserSection,
    CollisionSection,
    ConfigSection,
    EmbeddingSection,
    FlowSection,
    LimitsSection,
    McpServerSection,
    ModelSection,
    NotifySection,
    PriceSection,
    SearchSection,
    SecretSection,
    StrictSection,
)

CREDENTIAL_KEY = re.compile(r"(?i)(key|token|secret|password|passwd)$")
CREDENTIAL_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})
SERVER_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
MAX_SERVER_NAME_CHARACTERS = 30
MAX_SERVERS = 50


def parse_config(data: bytes, path: Path) -> Config:
    """Check the bytes of a config file; relative paths in it are relative to its directory.

    Raises:
        UsageError: see ``config.load``.
    """
    return settle(_checked_section(data, path), path)


def effective_settings(data: bytes, path: Path) -> dict[str, object]:
    """Return the settings under their keys in the file, defaults included.

    Raises:
        UsageError: see ``config.load``.
    """
    return _checked_section(data, path).model_dump(mode="json", by_alias=True)


def _checked_section(data: bytes, path: Path) -> ConfigSection:
    try:
        raw = load_yaml(data, str(path))
    except DamagedError as exc:
        raise UsageError(str(exc)) from exc
    if raw is None:
        return ConfigSection()
    if not isinstance(raw, dict):
        raise UsageError(f"{path}: must be a mapping of settings, not {type(raw).__name__}")
    try:
        section = ConfigSection.model_validate(raw)
    except ValidationError as exc:
        raise UsageError("\n".join(f"{path}: {problem}" for problem in explain(exc))) from exc
    parts = ("agents", "models", "search", "mcpServers", "embeddings", "notify")
    clear = (clear_credentials(raw.get(part, {}), part) for part in parts)
    problems = [*dangling(section), *(problem for part in clear for problem in part)]
    if problems:
        raise UsageError("\n".join(f"{path}: {problem}" for problem in problems))
    return section


def explain(error: ValidationError) -> Iterator[str]:
    """Yield each problem with its dotted key, and for an unknown key the nearest known one."""
    for item in error.errors():
        where = ".".join(str(part) for part in item["loc"])
        if where == "store":  # without the value, which may have a password
            yield f"{where}: {item['msg']}, such as postgresql://HOST/DATABASE"
            continue
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
        "browser": BrowserSection,
        "collisions": CollisionSection,
        "embeddings": EmbeddingSection,
        "flows": FlowSection,
        "limits": LimitsSection,
        "mcpServers": McpServerSection,
        "models": ModelSection,
        "notify": NotifySection,
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
    yield from notify_problems(section.notify)
    yield from address_problems(section.browser)
    yield from server_problems(section.mcp_servers)
    for key, chosen in (("model", section.model), ("extractor", section.extractor)):
        if chosen is not None and chosen not in section.models:
            near = (
                get_close_matches(chosen, section.models, n=3) or sorted(section.models) or ["none"]
            )
            yield f"{key}: there is no model {chosen!r} under models (there are: {', '.join(near)})"


def address_problems(browser: BrowserSection) -> Iterator[str]:
    """Yield problems of the addresses and address templates in the section ``browser``."""
    templates = {
        "encyclopedia": browser.encyclopedia,
        **{f"providers.{name}": template for name, template in browser.providers.items()},
    }
    for key, template in templates.items():
        if template.count(TEXT_PLACE) != 1:
            yield f"browser.{key}: must have {TEXT_PLACE} once, in the place of the words, not {template!r}"
    keywords = {f"keywords.{name}": address for name, address in browser.keywords.items()}
    for key, address in {**templates, **keywords}.items():
        try:
            read_target(address.replace(TEXT_PLACE, "words"))
        except UrlError as exc:
            yield f"browser.{key}: {exc}"


def notify_problems(notify: NotifySection | None) -> Iterator[str]:
    """Yield problems of the section ``notify``: no way to deliver or two, an address in clear."""
    if notify is None:
        return
    if (notify.command is None) == (notify.webhook is None):
        yield "notify: give either command (a program with its arguments) or webhook (url and secret)"
    if notify.command is not None and not (notify.command and notify.command[0]):
        yield "notify.command: must be a list of a program and its arguments"
    if notify.webhook is None or notify.webhook.url.startswith(PREFIX):
        return
    try:
        target = read_target(notify.webhook.url)
    except UrlError as exc:
        yield f"notify.webhook.url: {exc}"
        return
    if target.is_in_clear:
        yield f"notify.webhook.url: {NOT_IN_CLEAR}"


def server_problems(servers: Mapping[str, McpServerSection]) -> Iterator[str]:
    """Yield problems of MCP servers: names that are no names of packs, a server with no way to
    reach it or two, credentials in headers.
    """
    if len(servers) > MAX_SERVERS:
        yield f"mcpServers: {len(servers)} servers; at most {MAX_SERVERS} are allowed"
    for name, server in servers.items():
        where = f"mcpServers.{name}"
        if not SERVER_NAME.fullmatch(name) or len(name) > MAX_SERVER_NAME_CHARACTERS:
            yield f"{where}: the name must be lower-case words joined by '-', of at most {MAX_SERVER_NAME_CHARACTERS} characters"
        if (server.command is None) == (server.url is None):
            yield f"{where}: give either command (a program) or url (an address)"
        if server.url is not None:
            try:
                read_target(server.url)
            except UrlError as exc:
                yield f"{where}.url: {exc}"
        for key, text in server.headers.items():
            if key.lower() in CREDENTIAL_HEADERS and "secret:" not in text:
                yield f"{where}.headers.{key}: a credential does not belong here; write secret:NAME in its place"


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
        limits=limit_settings(section.limits),
        sandbox=section.sandbox,
        search=None if section.search is None else SearchSettings(**section.search.model_dump()),
        collisions=CollisionSettings(
            kind=section.collisions.kind,
            strategy=section.collisions.strategy,
            order=tuple(section.collisions.order),
            several=section.collisions.several,
            packs=section.collisions.packs,
            threshold=section.collisions.threshold,
        ),
        mcp_servers={name: server_settings(server) for name, server in section.mcp_servers.items()},
        embeddings=None
        if section.embeddings is None
        else AgentSettings(
            use=section.embeddings.use,
            settings=section.embeddings.model_dump(
                by_alias=True, exclude={"use"}, exclude_unset=True, exclude_none=True
            ),
        ),
        browser=BrowserSettings(
            program=section.browser.program,
            sandbox=section.browser.sandbox == "on",
            port=section.browser.port,
            heal=section.browser.heal,
            resolvers=tuple(section.browser.resolvers),
            search=section.browser.search,
            providers=section.browser.providers,
            encyclopedia=section.browser.encyclopedia,
            keywords=section.browser.keywords,
            knowledge=tuple(host.casefold() for host in section.browser.knowledge),
            parts=tuple(section.browser.parts),
        ),
        serve_port=section.serve.port,
        span_hosts=tuple(section.spans.hosts),
        secrets={name: source_of(source, path.parent) for name, source in section.secrets.items()},
        prices={
            name: price.model_dump(exclude_none=True) for name, price in section.prices.items()
        },
        environment=tuple(section.environment),
        consent=tuple(section.consent),
        test_command=section.test_command,
        instructions=section.instructions,
        capture=section.capture,
        store=section.store,
        notify=None if section.notify is None else notify_settings(section.notify),
    )


def limit_settings(section: LimitsSection) -> LimitSettings:
    return LimitSettings(
        max_rounds=section.max_rounds,
        max_steps=section.max_steps,
        agents=section.agents,
        max_cost=section.max_cost,
        max_tokens=section.max_tokens,
        max_seconds=section.max_seconds,
        max_journal_bytes=section.max_journal_bytes,
        bundle_s=section.bundle_seconds,
        agent_s=section.agent_seconds,
        worker_s=section.worker_seconds,
        history_chars=section.history_characters,
    )


def server_settings(section: McpServerSection) -> McpServerSettings:
    command = () if section.command is None else (section.command, *section.args)
    trusted = section.trusted
    return McpServerSettings(
        command=command,
        environment=section.env,
        url=section.url,
        headers=section.headers,
        trusted=tuple(trusted) if isinstance(trusted, list) else None if trusted else (),
        timeout_s=section.timeout_seconds,
    )


def notify_settings(section: NotifySection) -> NotifySettings:
    webhook = section.webhook
    return NotifySettings(
        command=tuple(section.command or ()),
        url=None if webhook is None else webhook.url,
        secret=None if webhook is None else webhook.secret,
        events=tuple(dict.fromkeys(section.events)),
        timeout_s=section.timeout_seconds,
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
