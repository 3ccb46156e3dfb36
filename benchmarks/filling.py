"""Registry of many flows, written at once: adding them one by one takes minutes."""

from __future__ import annotations

from collections.abc import Iterable

import yaml
from uncaged_bundles.storage.registry import digest_of
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

NOW_MS = 1_767_225_600_000


def fill_registry(store: Store, flows: Iterable[tuple[str, Bundle]]) -> None:
    """Write the bundles of an empty store, and a registry with their flows and grants."""
    grants, entries = {}, {}
    for name, bundle in flows:
        store.bundle_path(bundle.hash).write_bytes(bundle.source)
        grants[str(bundle.hash)] = {
            "policy": bundle.descriptor.raw["policy"],
            "digest": digest_of(bundle),
        }
        entries[name] = {
            "hash": str(bundle.hash),
            "timestamp": NOW_MS,
            "enabled": True,
            "source": "person",
            "created": NOW_MS,
            "history": [],
        }
    text = yaml.dump(
        {"grants": grants, "workflows": entries}, Dumper=yaml.CSafeDumper, sort_keys=False
    )
    store.registry_path.write_text(text, "utf-8")
