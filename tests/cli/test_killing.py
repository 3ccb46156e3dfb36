"""The verb `kill` reports the real status of a thread."""

from __future__ import annotations

import pytest
from testbed.bundles import COUNT, granted, place_script, script_of
from uncaged_bundles.storage.store import HOME_VARIABLE, Store
from uncaged_cli import main
from uncaged_engine.api import Engine


def test_a_kill_that_came_too_late_is_no_success(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A thread whose bundle returned before the kill is completed, and the message says so."""
    bundle = granted(store, COUNT)
    placed = place_script(
        store, bundle, script_of(bundle).done(1).end("completed", result={"message": "sum 1"})
    )
    monkeypatch.setenv(HOME_VARIABLE, str(store.root))
    # it was taken a moment ago
    monkeypatch.setattr(Engine, "kill", lambda _engine, _text: placed.thread)
    assert main.run(["kill", placed.thread]) == 1
    output = capsys.readouterr()
    assert "is completed: it ended before it could be killed" in output.err
    assert output.out == ""
