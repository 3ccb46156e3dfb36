"""Resolution of the paths in a script's policy, before it starts.

A path is absolute, or relative to the caller's directory; ``~`` and ``$NAME`` are expanded from the
caller's environment. ``param:NAME`` is the path of the thread's parameter NAME, and
``param:NAME/..`` the directory that holds it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from uncaged_bundles.paths import expanded
from uncaged_engine.services.sandbox import (
    GrantedPath,
    GrantedPaths,
    Identity,
    Refused,
    open_granted_paths,
)

from .spec import declared

PARAMETER = "param:"
HOLDER = "/.."
"""Ends an entry for the directory that holds a parameter's path."""


def resolve_paths(
    read: Iterable[str],
    write: Iterable[str],
    *,
    params: Mapping[str, object],
    environment: Mapping[str, str],
    directory: Path,
    written: Mapping[Identity, Path],
) -> GrantedPaths:
    """Resolve the paths of a policy; make a missing directory to write to, if the one above it
    exists.

    Args:
        params: of the thread. directory: the caller's. written: directories that scripts of this
            store may write, by identity.
    Raises:
        Refused: a path cannot be resolved, or a link leads it out of a directory that scripts may
            write.
    """

    def entries(texts: Iterable[str], key: str) -> list[tuple[str, Path]]:
        paths = (
            (text, resolve(text, key, params=params, environment=environment, directory=directory))
            for text in texts
        )
        return [(f"{key} {text!r}", path) for text, path in paths if path is not None]

    own = dict(written)
    writing: list[GrantedPath] = []
    for entry in sorted(entries(write, "write"), key=lambda entry: entry[1].parts):
        [path] = open_granted_paths([entry], own, make=True)
        writing.append(path)
        if path.identity is not None:
            own[path.identity] = path.real
    reading = open_granted_paths(entries(read, "read"), own)
    return GrantedPaths(read=_names(reading), write=_names(writing), paths=(*writing, *reading))


def _names(granted: Iterable[GrantedPath]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(name for path in granted for name in (path.path, path.real)))


def resolve(
    text: str,
    key: str,
    *,
    params: Mapping[str, object],
    environment: Mapping[str, str],
    directory: Path,
) -> Path | None:
    """Return the path of one entry of a policy; None for a parameter without a value."""
    is_holder = text.startswith(PARAMETER) and text.endswith(HOLDER)
    if text.startswith(PARAMETER):
        value = params.get(text.removeprefix(PARAMETER).removesuffix(HOLDER))
        if value is None:
            return None
        if not isinstance(value, str):
            raise Refused(
                f"the policy's {key} names {text}, but that parameter is {value!r}, no path"
            )
        text = value
    try:
        path = expanded(text, environment, directory)
    except ValueError as exc:
        raise Refused(f"the policy's {key} names {text!r}: {exc}") from exc
    # as the text has it: a link is removed or replaced in the directory that holds the link
    return Path(os.path.normpath(path)).parent if is_holder else path


def check_inside(granted: GrantedPaths, named: Mapping[str, str]) -> None:
    """Refuse a path parameter outside the granted paths. named: absolute paths by parameter."""
    for name, text in named.items():
        if not granted.covers(Path(text)):
            allowed = (
                ", ".join(dict.fromkeys(str(path) for path in (*granted.read, *granted.write)))
                or "nothing"
            )
            raise Refused(
                f"the path {text!r} (parameter {name!r}) is outside what the policy allows ({allowed}); {declared('read', [text])}"
            )
