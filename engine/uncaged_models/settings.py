"""Settings of a model, with checks and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast
from urllib.parse import urlsplit

from uncaged_bundles.errors import UsageError
from uncaged_engine.services import agent_settings as check
from uncaged_engine.services.settings import NOTHING

Wire = Literal["anthropic", "openai"]
WIRES: tuple[Wire, ...] = ("anthropic", "openai")
KEYS = ("model", "baseUrl", "key", "maxTokens", "structured", "options")

KEY_VARIABLES: Mapping[Wire, str] = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
URL_VARIABLES: Mapping[Wire, str] = {"anthropic": "ANTHROPIC_BASE_URL", "openai": "OPENAI_BASE_URL"}
URLS: Mapping[Wire, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
}
MODELS: Mapping[Wire, str] = {"anthropic": "claude-sonnet-5-5", "openai": "gpt-5.6-terra"}
ANTHROPIC_MAX_TOKENS = 32_000
"""Required by that API; includes thinking; a longer answer is continued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """Settings of one model.

    key: the credential itself, or "" for a server without one. max_tokens: of one turn; None leaves
    it to the server. structured: whether requests force data into a schema. options: sent with each
    request unchanged.
    """

    wire: Wire
    model: str
    url: str
    key: str = field(repr=False)
    max_tokens: int | None
    structured: bool
    options: Mapping[str, object]


def with_key(wire: str, settings: Mapping[str, object]) -> Mapping[str, object]:
    """Return the settings, with the well-known variable's key if they name no key and no server of
    their own.
    """
    if wire not in WIRES or "key" in settings or "baseUrl" in settings:
        return settings
    return {**settings, "key": f"secret:{KEY_VARIABLES[wire]}"}


def read_settings(
    wire: Wire, settings: Mapping[str, object], environment: Mapping[str, str] | None = None
) -> ModelSettings:
    """Check settings whose secrets are resolved; *environment* may name the address when they do
    not.

    Raises:
        UsageError: names the setting.
    """
    url = settings.get("baseUrl", (environment or {}).get(URL_VARIABLES[wire]) or URLS[wire])
    if (
        not isinstance(url, str)
        or urlsplit(url).scheme not in ("http", "https")
        or not urlsplit(url).hostname
    ):
        raise UsageError(
            f"a model that uses {wire!r} needs baseUrl: an address such as {URLS[wire]}, not {url!r}"
        )
    key, structured, options = (
        settings.get("key", ""),
        settings.get("structured", wire == "anthropic"),
        settings.get("options", NOTHING),
    )
    if not isinstance(key, str):
        raise UsageError(
            f"a model that uses {wire!r} needs key: secret:NAME, not {type(key).__name__}"
        )
    if not isinstance(structured, bool):
        raise UsageError(
            f"a model that uses {wire!r} needs structured: true or false, not {structured!r}"
        )
    if not isinstance(options, Mapping):
        raise UsageError(f"a model that uses {wire!r} needs options: a mapping, not {options!r}")
    max_tokens = count(
        settings, "maxTokens", ANTHROPIC_MAX_TOKENS if wire == "anthropic" else None, kind=wire
    )
    return ModelSettings(
        wire=wire,
        model=check.text(settings, "model", kind=wire) if "model" in settings else MODELS[wire],
        url=url.rstrip("/"),
        key=key,
        max_tokens=max_tokens,
        structured=structured,
        options=cast("Mapping[str, object]", options),
    )


def count(
    settings: Mapping[str, object], key: str, default: int | None, *, kind: str
) -> int | None:
    value = settings.get(key, default)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise UsageError(f"{kind!r} needs {key}: a whole number above 0, not {value!r}")
    return value
