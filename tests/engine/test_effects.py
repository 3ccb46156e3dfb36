"""Who hears of a request to stop, and as what."""

from __future__ import annotations

from uncaged_engine.door.effects import Cancel


def test_a_pause_stops_only_what_stops_for_it() -> None:
    """Any other effect goes on to its end, and the thread is left after it."""
    cancel = Cancel()
    cancel.pause()
    assert not cancel.requested
    with cancel.stops_for_pause():
        assert cancel.requested, "one that begins after the pause stops at once"
    assert cancel.only_paused


def test_a_pause_reaches_what_is_under_way() -> None:
    """Its actions run, once."""
    cancel, told = Cancel(), list[str]()
    with cancel.stops_for_pause(), cancel.on_request(lambda: told.append("stopped")):
        cancel.pause()
        cancel.pause()
    assert told == ["stopped"]
    assert cancel.only_paused


def test_a_kill_is_more_than_a_pause() -> None:
    """Whichever came first."""
    for first, second in (("pause", "request"), ("request", "pause")):
        cancel = Cancel()
        with cancel.stops_for_pause():
            getattr(cancel, first)()
            getattr(cancel, second)()
            assert cancel.requested
            assert not cancel.only_paused
