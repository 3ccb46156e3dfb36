"""Notifications about threads whose worker died, with journals made by hand and a set clock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from testbed.bundles import COUNT, Placed, granted, place, place_script, script_of, source
from testbed.interleaving import just_before
from testbed.journals import NOW_MS
from uncaged_bundles.storage.order import START
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.journal import lines
from uncaged_engine.journal.file import JournalFile
from uncaged_engine.journal.origin import ThreadOrigin, path_beside
from uncaged_engine.threads import deaths
from uncaged_engine.threads.deaths import OLDEST_MS, STARTING_MS
from uncaged_engine.threads.starting import Chance

HOUR_MS = 3_600_000


class Watched:
    """A store whose notifications are lines of a file, and its engine at a time of its own."""

    def __init__(self, store: Store) -> None:
        self.store, self.now_ms = store, NOW_MS + HOUR_MS
        self.engine = Engine(store, Chance(clock_ms=lambda: self.now_ms))
        self.file = store.root / "arrived"
        self.choose("interrupted, unknown")

    def choose(self, events: str) -> None:
        command = json.dumps(["sh", "-c", f"cat >> '{self.file}'; echo >> '{self.file}'"])
        self.store.config_path.write_text(f"notify: {{command: {command}, events: [{events}]}}\n")

    def look(self) -> list[tuple[str, str]]:
        """Subject and event of what one look sends."""
        self.file.write_text("")
        assert self.engine.notify_deaths() == []
        found: list[Any] = [json.loads(line) for line in self.file.read_text().splitlines()]
        return [(one["subject"], one["event"]) for one in found]


@pytest.fixture
def watched(store: Store) -> Watched:
    return Watched(store)


def append(watched: Watched, placed: Placed, body: bytes) -> None:
    journal = JournalFile.open(watched.store, placed.bundle.hash, placed.thread)
    journal.append(body, flush=True)
    journal.close()


def test_a_death_is_notified_once_until_the_thread_goes_on(watched: Watched) -> None:
    """A note keeps later looks silent, and changes neither when the thread was changed last nor how
    long it ran; a second death is another one.
    """
    placed = place(watched.store, COUNT)
    before = watched.engine.thread(placed.thread)
    assert watched.look() == [(placed.thread, "interrupted")]
    assert watched.look() == []
    after = watched.engine.thread(placed.thread)
    assert after.summary == before.summary
    assert (after.ran_ms, len(after.records)) == (before.ran_ms, len(before.records) + 1)
    watched.now_ms += HOUR_MS
    append(watched, placed, lines.control("resume", {}, watched.now_ms))
    append(watched, placed, lines.intent(1, b'{"null":{"value":1}}', watched.now_ms + 5_000))
    watched.now_ms += HOUR_MS
    assert watched.engine.thread(placed.thread).ran_ms == before.ran_ms + 5_000
    assert watched.look() == [(placed.thread, "interrupted")]
    assert watched.engine.thread(placed.thread).ran_ms == before.ran_ms + 5_000


def test_of_two_looks_at_once_one_notifies(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one finds the note of the first under the journal's lock."""
    placed = place(watched.store, COUNT)
    just_before(monkeypatch, deaths, "_note", watched.engine.notify_deaths)
    assert watched.look() == [(placed.thread, "interrupted")]


def test_steps_after_a_note_make_the_next_death_another_one(watched: Watched) -> None:
    """Steps alone, without a resume of a person, as of a thread that its parent took up."""
    bundle = granted(watched.store, COUNT)
    script = script_of(bundle)
    script.add(lines.notified("interrupted", NOW_MS))
    for seq in (1, 2, 3):
        script.intent(seq).step(seq)
    placed = place_script(watched.store, bundle, script)
    assert watched.look() == [(placed.thread, "interrupted")]


def test_an_effect_in_doubt_is_notified_as_unknown(watched: Watched) -> None:
    """A death inside an effect that only a person can decide about has its own event."""
    bundle = granted(watched.store, COUNT)
    effect = {"null": {"value": 1, "rule": "ask"}}
    placed = place_script(watched.store, bundle, script_of(bundle).intent(1, effect))
    assert watched.look() == [(placed.thread, "unknown")]
    assert watched.look() == []
    assert watched.engine.thread(placed.thread).summary.status == "unknown"


def test_threads_that_need_nobody_are_passed_over(watched: Watched) -> None:
    """One that sleeps, a child, one of last month, one that runs, events that were not chosen."""
    sleeper = granted(
        watched.store,
        source("sleeper", COUNT.decode().partition("options):\n")[2], policy={"sleep": {}}),
    )
    asleep = script_of(sleeper, number=1).intent(1, {"sleep": {"seconds": 600}})
    place_script(watched.store, sleeper, asleep)
    bundle = granted(watched.store, COUNT)
    parent = {"threadId": asleep.thread, "seq": 1, "depth": 1}
    place_script(watched.store, bundle, script_of(bundle, number=2, parent=parent))
    assert watched.look() == []
    dead = place(watched.store, COUNT, number=3)
    held = JournalFile.open(watched.store, dead.bundle.hash, dead.thread)
    assert watched.look() == []
    held.close()
    watched.choose("failed")
    assert watched.look() == []
    watched.choose("interrupted")
    watched.now_ms = NOW_MS + 2 * OLDEST_MS
    assert watched.look() == []


def test_a_thread_that_a_worker_may_be_taking_up_is_not_dead(watched: Watched) -> None:
    """After its start, a resume or an answer, its lock is free for a moment; after a minute it is
    dead. A look that passes it over writes nothing, and takes no lock.
    """
    placed = place_script(
        watched.store,
        bundle := granted(watched.store, COUNT),
        script_of(bundle, number=1),
    )
    order = watched.store.noted_since(START)
    watched.now_ms = NOW_MS + STARTING_MS - 1_000
    assert watched.engine.thread(placed.thread).summary.status == "interrupted", "the control"
    assert watched.look() == []
    assert watched.store.noted_since(START) == order
    watched.now_ms = NOW_MS + STARTING_MS
    assert watched.look() == [(placed.thread, "interrupted")]
    append(watched, placed, lines.control("resume", {}, watched.now_ms))
    assert watched.look() == []
    append(watched, placed, lines.intent(1, b'{"null":{"value":1}}', watched.now_ms))
    assert watched.look() == [(placed.thread, "interrupted")]


def test_nothing_is_listed_without_a_receiver(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`due` looks every few seconds, and most stores notify of nothing."""
    watched.store.config_path.write_text("")
    monkeypatch.setattr(Engine, "threads", None)
    assert watched.engine.notify_deaths() == []


def test_a_delivery_that_fails_is_reported_and_not_repeated(watched: Watched) -> None:
    """The person learns of it from the command that looked; the note is kept."""
    placed = place(watched.store, COUNT)
    watched.store.config_path.write_text("notify: {command: ['false']}\n")
    [problem] = watched.engine.notify_deaths()
    assert problem == f"thread {placed.thread}: the command of notify ended with 1"
    assert watched.engine.notify_deaths() == []
    assert Path(placed.path).exists()


def test_a_strangers_thread_that_never_ran_here_is_not_dead(watched: Watched) -> None:
    """Its worker was another machine's; once it was resumed here, its death is one of ours."""
    placed = place(watched.store, COUNT)
    path = Path(placed.path)
    ThreadOrigin(bytes=path.stat().st_size, steps=0, importedMs=NOW_MS).write(path)
    assert watched.look() == []
    resumed = lines.control("resume", {"binding": {}}, NOW_MS)
    append(watched, placed, resumed)
    assert watched.look() == [(placed.thread, "interrupted")]


def test_a_thread_that_cannot_be_read_keeps_no_other_from_its_notification(
    watched: Watched,
) -> None:
    """A damaged thread is a sentence of the result; the deaths of all others are sent."""
    placed = [place(watched.store, COUNT, number=number) for number in (1, 2, 3)]
    path_beside(Path(placed[1].path)).write_bytes(b"{}")
    [problem] = watched.engine.notify_deaths()
    assert placed[1].thread in problem and "cannot be read" in problem
    sent = [json.loads(line)["subject"] for line in watched.file.read_text().splitlines()]
    assert sorted(sent) == sorted([placed[0].thread, placed[2].thread])
