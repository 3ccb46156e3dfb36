"""API keys in the store, one file each, readable by the owner only. No function prints a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_bundles.storage.files import write_atomically

from .config import SecretSource
from .variables import KEY_VARIABLES

_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
MAX_CHARACTERS = 16_384


def source_of(
    name: str, directory: Path | None, environment: Mapping[str, str]
) -> SecretSource | None:
    """Return the source of a secret that config does not name: a well-known variable that is set,
    else the store's own key.
    """
    if name in KEY_VARIABLES and environment.get(name):
        return SecretSource(env=name)
    if directory is not None and _NAME.fullmatch(name) and (directory / name).is_file():
        return SecretSource(file=directory / name)
    return SecretSource(env=name) if name in KEY_VARIABLES else None


def names(directory: Path) -> list[str]:
    return (
        sorted(entry.name for entry in directory.iterdir() if _NAME.fullmatch(entry.name))
        if directory.is_dir()
        else []
    )


def put(directory: Path, name: str, value: str) -> Path:
    """Write a key to the store.

    Raises:
        UsageError: the name is not in capitals, or the value is empty, too long, or has a line
            break.
    """
    checked(name)
    if not value:
        raise UsageError(f"the value of {name} is empty; nothing was kept")
    if len(value) > MAX_CHARACTERS or not value.isprintable():
        raise UsageError(
            f"the value of {name} must be one line of at most {MAX_CHARACTERS} characters; nothing was kept"
        )
    directory.mkdir(mode=0o700, exist_ok=True)
    write_atomically(directory / name, value.encode())
    (directory / name).chmod(0o600)
    return directory / name


def remove(directory: Path, name: str) -> None:
    checked(name)
    try:
        (directory / name).unlink()
    except FileNotFoundError as exc:
        raise NotFoundError(
            f"there is no key {name!r}; there are: {', '.join(names(directory)) or 'none'}"
        ) from exc


def checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} is no name of a key: capitals, digits and _, as in ANTHROPIC_API_KEY"
        )
    return name
