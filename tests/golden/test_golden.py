"""Bundles and journals of former days are replayed for ever.

Each directory holds a bundle under its hash (not as `.py`, so that no tool rewrites it) and a
journal under its thread's id. They are
never made anew: when one no longer verifies, the change that broke it breaks every journal out
there.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from testbed.journals import records_of
from testbed.steering import finish
from uncaged_bundles.ids import bundle_hash, parse_bundle_hash, parse_thread_id
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Cut, Engine
from uncaged_engine.effect_kinds import KNOWN
from uncaged_engine.journal.recover import recover, recover_strictly
from uncaged_engine.threads.verify import verify

GOLDEN = Path(__file__).parent
NAMES = {
    "numbers": ("completed", 5, "3150 1050"),
    "refusals": ("failed", 8, "3 tries, then the last straw"),
    "review": ("completed", 7, ""),
    "blocks": ("completed", 5, "Grüezi BERN, ZÜRICH"),
    "web": ("completed", 4, "Thanks"),
}
LINE_KINDS = {"format", "intent", "attempt", "role", "outcome", "error", "void", "control", "end"}


class Golden:
    """A golden bundle and its journal, copied into a store."""

    def __init__(self, name: str, store: Store) -> None:
        [bundle] = (GOLDEN / name).glob("*.bundle")
        [journal] = (GOLDEN / name).glob("*.data.jsonl")
        self.hash = parse_bundle_hash(bundle.stem)
        self.thread = parse_thread_id(journal.name.partition(".")[0])
        self.data = journal.read_bytes()
        self.source = bundle.read_bytes()
        self.path = store.data_path(self.hash, self.thread)
        self.path.parent.mkdir()
        shutil.copy(bundle, store.bundle_path(self.hash))
        shutil.copy(journal, self.path)


@pytest.mark.parametrize("name", NAMES)
def test_the_files_are_what_they_were(name: str, store: Store) -> None:
    """The bundle has its hash and is still valid; fast and strict reading give the same whole
    history.
    """
    golden = Golden(name, store)
    assert bundle_hash(golden.source) == golden.hash
    assert store.load_bundle(golden.hash, KNOWN).source == golden.source
    fast, strict = (
        read(golden.data, golden.hash, golden.thread) for read in (recover, recover_strictly)
    )
    assert fast.damage is None
    assert strict.damage is None
    assert fast.effects.hexdigest() == strict.effects.hexdigest()
    assert fast.steps == strict.steps


@pytest.mark.parametrize("prefer", ["bubblewrap", "landlock"])
@pytest.mark.parametrize("name", NAMES)
def test_the_journal_is_proved(name: str, prefer: str, store: Store) -> None:
    """The recorded code with the recorded outcomes still gives the recorded journal, in either
    sandbox.
    """
    golden = Golden(name, store)
    verdict = verify(store, golden.hash, golden.thread, golden.path, prefer=prefer, deadline_s=20)
    assert verdict.ok, verdict.message


@pytest.mark.parametrize("name", NAMES)
def test_the_thread_is_listed_as_it_ended(name: str, store: Store) -> None:
    """State, number of steps and last message are still read from it."""
    golden = Golden(name, store)
    found = Engine(store).thread(golden.thread).summary
    status, steps, message = NAMES[name]
    assert (found.status, found.steps) == (status, steps)
    assert message in found.message


@pytest.mark.slow
def test_a_golden_thread_can_be_forked_and_goes_on(engine: Engine) -> None:
    """From any of its steps it runs to the same end again."""
    golden = Golden("numbers", engine.store)
    engine.add("numbers", golden.source, accept=lambda _widened: True)
    for kept in (0, 3, 5):
        fork = engine.fork(golden.thread, cut=Cut(at=kept))
        assert finish(engine, fork)["message"] == "3150 1050"
        assert engine.verify(fork).ok
    assert golden.path.read_bytes() == golden.data


def test_the_golden_journals_hold_every_kind_of_line() -> None:
    """Together they show what a journal may hold, so that none of it can change its meaning
    unseen.
    """
    kinds = set()
    for name in NAMES:
        [journal] = (GOLDEN / name).glob("*.data.jsonl")
        for record in records_of(journal.read_bytes()):
            kinds |= LINE_KINDS & set(record)
    assert kinds == LINE_KINDS
