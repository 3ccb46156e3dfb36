"""Loading of a store's configuration. The YAML reader is imported only for a config file with
content.
"""

from __future__ import annotations

from uncaged_bundles.records import replace
from uncaged_bundles.storage.store import Store

from .config import KEYS, Config


def load(store: Store) -> Config:
    """Read the store's ``config.yaml``; a missing or blank file is the default.

    Raises:
        UsageError: the file is invalid; the message has the path, the dotted key and the nearest
            known one.
    """
    try:
        data = store.config_path.read_bytes()
    except FileNotFoundError:
        return Config(keys=store.config_path.parent / KEYS)
    if not data.strip():
        return Config(path=store.config_path, keys=store.config_path.parent / KEYS)
    from .config_file import parse_config

    return replace(parse_config(data, store.config_path), keys=store.config_path.parent / KEYS)
