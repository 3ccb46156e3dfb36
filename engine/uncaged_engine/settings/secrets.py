"""Resolution of ``secret:NAME`` references, and redaction of the resolved values in everything that
is written to disk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncaged_bundles.errors import EnvironmentLacks

from . import keys
from .config import Config
from .system_keyring import read_secret
from .variables import KEY_VARIABLES

PREFIX = "secret:"
MIN_CHARACTERS = 6
"""Shorter values are not redacted: replacing every ``1`` would destroy a text and protect
nothing.
"""


def resolve(
    value: object, config: Config, environment: Mapping[str, str]
) -> tuple[object, dict[str, str]]:
    """Replace each text ``secret:NAME`` inside *value*.

    Returns:
        The value, and the secrets in it: value to name, the argument of ``redact``.
    Raises:
        EnvironmentLacks: a secret that config does not name, or whose source is unset.
    """
    used: dict[str, str] = {}

    def walk(inner: object) -> object:
        if isinstance(inner, str) and inner.startswith(PREFIX):
            name = inner.removeprefix(PREFIX)
            secret = secret_value(name, config, environment)
            used[secret] = name
            return secret
        if isinstance(inner, Mapping):
            return {key: walk(item) for key, item in inner.items()}
        if isinstance(inner, Sequence) and not isinstance(inner, str | bytes):
            return [walk(item) for item in inner]
        return inner

    return walk(value), used


def secret_value(name: str, config: Config, environment: Mapping[str, str]) -> str:
    """Return the value of the secret *name*; EnvironmentLacks names it and its source when there is
    none.
    """
    source = config.secrets.get(name) or keys.source_of(name, config.keys, environment)
    if source is None:
        advice = f"`uncaged-workflow keys set {name}`, or add `secrets: {{{name}: {{env: VARIABLE}}}}` to config.yaml"
        raise EnvironmentLacks(f"secret:{name} is not known", remedy=advice)
    if source.keyring is not None:
        return read_secret(name, *source.keyring, environment)
    if source.env is not None:
        value = environment.get(source.env, "")
        if not value:
            raise EnvironmentLacks(
                f"secret:{name} comes from {source}, which is not set", remedy="set it"
            )
        return value
    try:
        value = source.file.read_text("utf-8").strip() if source.file is not None else ""
    except (OSError, UnicodeDecodeError) as exc:
        raise EnvironmentLacks(
            f"secret:{name} comes from {source}, which cannot be read ({exc})", remedy="correct it"
        ) from exc
    if not value:
        raise EnvironmentLacks(
            f"secret:{name} comes from {source}, which is empty", remedy="fill it"
        )
    return value


def known_secrets(config: Config, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that the config names, value to name, as far as the environment or a file
    has them. The system's keyring is not asked.
    """
    found = {}
    for name, source in config.secrets.items():
        if source.keyring is None:
            try:
                found[secret_value(name, config, environment)] = name
            except EnvironmentLacks:
                continue
    return found


def secret_names(config: Config) -> list[str]:
    """Return the names of all secrets that may have a value."""
    own = [] if config.keys is None else keys.names(config.keys)
    return sorted({*config.secrets, *own, *KEY_VARIABLES})


def redact(value: object, secrets: Mapping[str, str]) -> object:
    """Replace every occurrence of a secret's value in the texts (keys included) of *value* by
    ``secret:NAME``.
    """
    longest_first = sorted(
        (text for text in secrets if len(text) >= MIN_CHARACTERS), key=len, reverse=True
    )
    if not longest_first:
        return value

    def walk(inner: object) -> object:
        if isinstance(inner, str):
            for text in longest_first:
                inner = inner.replace(text, PREFIX + secrets[text])
            return inner
        if isinstance(inner, Mapping):
            return {walk(key): walk(item) for key, item in inner.items()}
        if isinstance(inner, Sequence) and not isinstance(inner, bytes):
            return [walk(item) for item in inner]
        return inner

    return walk(value)
