"""Change of one setting in ``config.yaml``; its other lines are unchanged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from uncaged_bundles.errors import DamagedError, UsageError
from uncaged_bundles.storage.files import changing, read_if_there, write_atomically

from .config import Config

LOCK_TIMEOUT_S = 10.0


def change_setting(
    path: Path, key: str, value: Callable[[Config], object], *, section: str | None = None
) -> None:
    """Set a key to the value that follows from the current settings.

    Args:
        section: the top-level mapping that has the key; None for a top-level key.
    Raises:
        UsageError: the file is no valid config. RefusedError: another process is changing it.
    """
    from uncaged_bundles.storage.document import Document

    from .config_file import parse_config

    try:
        with changing(path, timeout_s=LOCK_TIMEOUT_S):
            before = read_if_there(path) or b""
            document = Document.parse(before, str(path))
            new = value(parse_config(before, path))
            if section is None:
                document.put_top(key, new, inline=True)
            else:
                document.put_value(section, key, new)
            after = document.rewritten()
            parse_config(after, path)
            write_atomically(path, after)
    except DamagedError as exc:
        raise UsageError(str(exc)) from exc
