"""Secrets: references in settings resolved, and known values replaced in what leaves the engine."""

from __future__ import annotations

from ..settings.keys import source_of
from ..settings.secrets import (
    MIN_CHARACTERS,
    PREFIX,
    known_secrets,
    redact,
    resolve,
    secret_names,
    secret_value,
)

__all__ = [
    "MIN_CHARACTERS",
    "PREFIX",
    "known_secrets",
    "redact",
    "resolve",
    "secret_names",
    "secret_value",
    "source_of",
]
