"""Pins of threads."""

from __future__ import annotations

import pytest
from testbed.bundles import COUNT, granted, place_script, script_of
from testbed.interleaving import just_before
from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.storage.store import Store
from uncaged_engine.journal import pins


def test_a_thread_that_is_removed_just_now_has_no_pin(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A removal between the look at the journal and the pin leaves no file of the thread."""
    bundle = granted(store, COUNT)
    placed = place_script(store, bundle, script_of(bundle).done(1).end("completed"))
    journal = store.journal_of(placed.thread)
    assert journal is not None
    just_before(monkeypatch, pins, "sync_directory", journal.unlink)
    with pytest.raises(NotFoundError, match="was removed just now"):
        pins.set_pinned(store, bundle.hash, placed.thread, pinned=True)
    assert not pins.pin_of(journal, placed.thread).exists()
