"""Context of a sentence: the caller's directory and environment, and the conversation's state."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from uncaged_bundles.records import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceContext:
    """What a sentence is read with, besides the rules.

    environment, directory: those of the caller, for paths in parameters. entities: readers of named
    things by type; they return the value, or `UNDEFINED`. now: for dates such as `tomorrow`. packs:
    those of the activity, which are preferred; with exclusive, no other pack is read.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    directory: Path = field(default_factory=Path.cwd)
    entities: Mapping[str, Callable[[str], object]] = field(default_factory=dict)
    now: Callable[[], datetime] = datetime.now
    packs: tuple[str, ...] = ()
    exclusive: bool = False
