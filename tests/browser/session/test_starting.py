"""Start of a session as a process of its own: one that crashes, and one that is there already."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from uncaged_browser.session.address import DEFAULT_SESSION, lock_path, report_path
from uncaged_browser.session.starting import start_session
from uncaged_bundles.errors import EngineBug
from uncaged_bundles.storage.store import Store


def test_a_session_that_crashes_at_its_start_is_a_bug(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the report, which has the traceback of this start alone."""
    package = tmp_path / "broken" / "playwright"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('this package is broken')\n")
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    report = report_path(store, DEFAULT_SESSION)
    report.write_text("Traceback of former days\n")
    with pytest.raises(EngineBug, match=str(report)):
        start_session(store, DEFAULT_SESSION)
    written = report.read_text()
    assert "this package is broken" in written and "former days" not in written


def test_the_report_of_a_session_that_runs_is_kept(store: Store) -> None:
    """A process that is started beside it leaves, and says so to its starter."""
    report = report_path(store, DEFAULT_SESSION)
    report.write_text("Traceback of now\n")
    with lock_path(store, DEFAULT_SESSION).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert start_session(store, DEFAULT_SESSION) is False
    assert report.read_text() == "Traceback of now\n"
