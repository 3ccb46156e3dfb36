"""JSON on stdout for `--json`: one document, or one object per line while following. Nothing else
goes to stdout.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

Document = Mapping[str, object] | list[Mapping[str, object]]


def document(value: Document) -> None:
    """Print the document of a verb, in ASCII: no character of it can steer a terminal."""
    _write(json.dumps(value, indent=2, default=_plain))


def line(value: Mapping[str, object]) -> None:
    """Print one object of a stream on its own line and flush."""
    _write(json.dumps(value, separators=(",", ":"), default=_plain))


def _write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple | set | frozenset):
        return sorted(value) if isinstance(value, set | frozenset) else list(value)
    return str(value)
