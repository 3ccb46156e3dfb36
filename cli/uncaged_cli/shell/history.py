"""History of the shell's lines in a private file of the store, one JSON text per line. A line that
begins with a space is not kept, and known secrets are replaced by their names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import History
from uncaged_bundles.errors import EnvironmentLacks, UncagedError
from uncaged_bundles.storage.files import read_if_there, write_atomically
from uncaged_engine.api import Engine
from uncaged_engine.settings.keys import names
from uncaged_engine.settings.secrets import redact, secret_value
from uncaged_engine.settings.variables import KEY_VARIABLES

FILE = "shell-history.jsonl"
MAX_BYTES = 1 << 20
KEPT_LINES = 2_000
"""So many lines are left of a file that has become too large."""
MAX_CHARACTERS = 10_000
PRIVATE = 0o600


class PrivateHistory(History):
    """The history in a file. A file that cannot be used makes it forget, and stops no request."""

    def __init__(self, path: Path, secrets: Callable[[], Mapping[str, str]]) -> None:
        """Args: secrets: returns the names of the known secrets by their values."""
        super().__init__()
        self._path = path
        self._secrets = secrets

    def append_string(self, string: str) -> None:
        """Keep a line unless it begins with a space."""
        if not string.startswith(" "):
            super().append_string(str(redact(string, self._secrets())))

    def load_history_strings(self) -> Iterable[str]:
        """Return the kept lines, the last one first."""
        try:
            data = read_if_there(self._path) or b""
            lines = data.splitlines()
            if len(data) > MAX_BYTES:
                lines = lines[-KEPT_LINES:]
                write_atomically(self._path, b"".join(line + b"\n" for line in lines))
                self._path.chmod(PRIVATE)
        except (OSError, UncagedError):
            return []
        return list(filter(None, map(_text, reversed(lines))))

    def store_string(self, string: str) -> None:
        """Append a line to the file."""
        line = json.dumps(string[:MAX_CHARACTERS]) + "\n"
        with suppress(OSError):
            fd = os.open(
                self._path,
                os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW,
                PRIVATE,
            )
            try:
                os.fchmod(fd, PRIVATE)
                os.write(fd, line.encode())
            finally:
                os.close(fd)


def history_of(engine: Engine) -> PrivateHistory:
    """Return the history of a store."""
    return PrivateHistory(engine.store.root / FILE, lambda: _known_secrets(engine))


def _known_secrets(engine: Engine) -> dict[str, str]:
    """Return the names of the secrets by their values, but for those in the system keyring, which
    may ask the person.
    """
    found: dict[str, str] = {}
    with suppress(UncagedError, OSError):
        config = engine.config
        kept = [] if config.keys is None else names(config.keys)
        for name in dict.fromkeys((*config.secrets, *kept, *KEY_VARIABLES)):
            source = config.secrets.get(name)
            if source is None or source.keyring is None:
                with suppress(EnvironmentLacks):
                    found[secret_value(name, config, os.environ)] = name
    return found


def _text(line: bytes) -> str:
    """Return the text of a line of the file; empty if it is none."""
    try:
        text = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return text if isinstance(text, str) and text.isprintable() else ""
