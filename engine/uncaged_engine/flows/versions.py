"""Versions named by flow, by hash or hash prefix, or as ``NAME~N``."""

from __future__ import annotations

from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.snapshot import Flow
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle

from ..effect_kinds import KNOWN


def find_version(registry: Registry, text: str) -> tuple[Flow | None, BundleHash]:
    """Return the flow (None for a bare hash) and the hash of ``NAME``, ``NAME~N`` or a hash."""
    name, tilde, back = text.partition("~")
    if not tilde:
        entry = registry.flow(text)
        return (entry, entry.hash) if entry else (None, registry.resolve(text)[1])
    if not back.isdecimal():
        raise UsageError(f"{text!r} is not a version; {name}~1 is the version before")
    entry = registry.entry(name)
    hashes = [entry.hash, *(version.hash for version in entry.history)]
    if int(back) >= len(hashes):
        former = len(entry.history)
        raise NotFoundError(
            f"flow {name!r} has {former} former version{'' if former == 1 else 's'}; see: uncaged-workflow history {name}"
        )
    return entry, hashes[int(back)]


def load_version(store: Store, registry: Registry, text: str) -> Bundle:
    """Return the bundle of ``NAME``, ``NAME~N`` or a hash."""
    return store.load_bundle(find_version(registry, text)[1], KNOWN)


def former_hash(flow: Flow, text: str) -> BundleHash:
    """Return the hash in the history of *flow* that begins with *text*."""
    matches = [version.hash for version in flow.history if version.hash.startswith(text.upper())]
    if not matches:
        raise NotFoundError(
            f"no former version of {flow.name!r} begins with {text!r}; see: uncaged-workflow history {flow.name}"
        )
    if len(set(matches)) > 1:
        raise UsageError(f"{text!r} is a prefix of several versions: {', '.join(matches)}")
    return matches[0]
