"""A small valid bundle to vary, and an empty store to put it in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from uncaged_bundles.storage.registry import Registry
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle, read_bundle

MakeSource = Callable[..., bytes]


@pytest.fixture
def make_source() -> MakeSource:
    """Return the source of a bundle. Keyword arguments replace or add keys of the descriptor (None
    removes one); *head* and *body* surround it.
    """

    def make(
        *, body: str = "    yield {'null': {}}\n", head: str = "", tail: str = "", **changes: object
    ) -> bytes:
        descriptor: dict[str, object] = {
            "contract": 1,
            "name": "demo",
            "description": "A demo.",
            "kind": "workflow",
        } | changes
        kept = {key: value for key, value in descriptor.items() if value is not None}
        return f"{head}descriptor = {kept!r}\ndef run(input, options):\n{body}{tail}".encode()

    return make


@pytest.fixture
def make_bundle(make_source: MakeSource) -> Callable[..., Bundle]:
    return lambda **arguments: read_bundle(make_source(**arguments))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


@pytest.fixture
def registry(store: Store) -> Registry:
    return Registry(store)
