"""A coding program that happens to be on PATH answers for roles only after a person said yes to it, once; the config keeps the answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from uncaged_bundles.errors import UsageError
from uncaged_bundles.storage.files import read_if_there, write_atomically
from uncaged_engine.settings.config import Config

from .program.table import Row, table

NO = "not "
"""Stands before a name in ``consent`` that a person said no to."""
LINE = re.compile(rb"(?m)^consent:[ \t]*\[([^\]\[#\n]*)\]([ \t]*|[ \t]+#[^\n]*)$")
LOCK_TIMEOUT_S = 10.0


def present(environment: Mapping[str, str]) -> list[Row]:
    """The coding programs on PATH, in the table's order; of several ways to use one the first."""
    found: dict[str, Row] = {}
    for row in table().values():
        program = row.found(environment.get("PATH", ""))
        if program is not None:
            found.setdefault(program, row)
    return list(found.values())


def agreed(config: Config, environment: Mapping[str, str]) -> Row | None:
    """The first program on PATH that a person said yes to, in the order of the config."""
    rows = table()
    path = environment.get("PATH", "")
    return next((rows[name] for name in config.consent if name in rows and rows[name].found(path) is not None), None)


def to_ask(config: Config, environment: Mapping[str, str]) -> Row | None:
    """The first program on PATH that nobody said yes or no to; None if there is one to use already."""
    if agreed(config, environment) is not None:
        return None
    refused = {name.removeprefix(NO) for name in config.consent}
    return next((row for row in present(environment) if row.name not in refused), None)


def keep(path: Path, name: str, *, yes: bool) -> None:
    """Write the answer into ``config.yaml`` and leave everything else in it as it is.

    Raises:
        UsageError: the file is written in a way that a line cannot be added to; says which line.
    """
    from filelock import FileLock
    from uncaged_engine.settings.config_file import parse_config

    word = name if yes else f"{NO}{name}"
    with FileLock(f"{path}.lock", timeout=LOCK_TIMEOUT_S):
        before = read_if_there(path) or b""
        found = LINE.search(before)
        if found is not None:
            words = [part for part in found.group(1).split(b",") if part.strip()]
            line = b"consent: [" + b", ".join([*(part.strip() for part in words), word.encode()]) + b"]" + found.group(2)
            after = before[: found.start()] + line + before[found.end() :]
        else:
            after = before + (b"" if not before or before.endswith(b"\n") else b"\n") + f"consent: [{word}]\n".encode()
        try:
            kept = parse_config(after, path).consent
        except UsageError as exc:
            raise UsageError(f"{path}: the answer cannot be added; write `consent: [{word}]` into it yourself ({exc})") from exc
        if word not in kept:
            raise UsageError(f"{path}: the answer cannot be added; write `consent: [{word}]` into it yourself")
        write_atomically(path, after)
