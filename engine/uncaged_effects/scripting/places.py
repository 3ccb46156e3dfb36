"""A script's paths are settled before it starts: variables expanded, links and ``..`` resolved,
each inside what the policy names.

A path in a policy is absolute, or relative to the caller's directory; ``~`` and ``$NAME`` are
expanded from the caller's environment;
``param:NAME`` stands for the path that a person gave as the parameter NAME when the thread was
started.
"""

from __future__ import annotations

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

from .wish import declared

PARAMETER = "param:"


def settle(
    read: Iterable[str],
    write: Iterable[str],
    *,
    given: Mapping[str, object],
    environment: Mapping[str, str],
    directory: Path,
    written: Mapping[Identity, Path],
) -> GrantedPaths:
    """Resolve the paths of a policy; make a missing directory to write to, if the one above it
    exists.

    Args:
        given: the thread's own parameters. directory: the caller's. written: what scripts of this
            store may write, by identity.
    Raises:
        Refused: a path cannot be resolved, or a link leads it out of a directory that scripts may
            write.
    """

    def entries(texts: Iterable[str], key: str) -> list[tuple[str, Path]]:
        paths = (
            (text, resolve(text, key, given=given, environment=environment, directory=directory))
            for text in texts
        )
        return [(f"{key} {text!r}", path) for text, path in paths if path is not None]

    own = dict(written)
    writing: list[GrantedPath] = []
    for entry in sorted(entries(write, "write"), key=lambda entry: entry[1].parts):
        [root] = open_granted_paths([entry], own, make=True)
        writing.append(root)
        if root.identity is not None:
            own[root.identity] = root.real
    reading = open_granted_paths(entries(read, "read"), own)
    return GrantedPaths(read=_names(reading), write=_names(writing), paths=(*writing, *reading))


def _names(granted: Iterable[GrantedPath]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(path for one in granted for path in (one.path, one.real)))


def resolve(
    text: str,
    key: str,
    *,
    given: Mapping[str, object],
    environment: Mapping[str, str],
    directory: Path,
) -> Path | None:
    """The path that one entry of a policy means; None for a parameter that nobody gave."""
    if text.startswith(PARAMETER):
        value = given.get(text.removeprefix(PARAMETER))
        if value is None:
            return None
        if not isinstance(value, str):
            raise Refused(
                f"the policy's {key} names {text}, but that parameter is {value!r}, no path"
            )
        text = value
    try:
        return expanded(text, environment, directory)
    except ValueError as exc:
        raise Refused(f"the policy's {key} names {text!r}: {exc}") from exc


def check_inside(places: GrantedPaths, named: Mapping[str, str]) -> None:
    """Refuse a path parameter that leads out of what the policy allows; *named*: absolute paths by
    parameter.
    """
    for name, text in named.items():
        if not places.covers(Path(text)):
            allowed = (
                ", ".join(dict.fromkeys(str(path) for path in (*places.read, *places.write)))
                or "nothing"
            )
            raise Refused(
                f"the path {text!r} (parameter {name!r}) is outside what the policy allows ({allowed}); {declared('read', [text])}"
            )
