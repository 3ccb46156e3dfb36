"""Which lines of a journal are notified, and with which words."""

from __future__ import annotations

from pathlib import Path

import pytest
from testbed.journals import THREAD
from uncaged_engine.journal import lines
from uncaged_engine.journal.infolog import InfoLog
from uncaged_engine.notify.sender import Sender
from uncaged_engine.settings.config import Config, NotifySettings
from uncaged_engine.steps.status_notes import StatusNotes

PARENT = {"threadId": THREAD, "seq": 1, "depth": 1}
EVERY = NotifySettings(command=("true",))
WAIT = lines.control("wait", {"seq": 1, "question": "which?"}, 1)
UNKNOWN = lines.control("unknown", {"seq": 3}, 1)
FAILED = lines.end("failed", {"error": {"kind": "bundle", "message": "boom"}}, 1)
LIMIT = lines.end("limit", {"limit": "maxSteps", "value": 1, "message": "the limit"}, 1)
OTHERS = (
    lines.end("completed", {"result": {"end": "failed"}}, 1),
    lines.end("killed", {}, 1),
    lines.control("pause", {}, 1),
    lines.notified("failed", 1),
    lines.step(1, {"outcome": '{"end":"failed"'}, 1),
)


def about(
    body: bytes, settings: NotifySettings | None = EVERY, **start: object
) -> tuple[str, str] | None:
    """Event and message of the notification about a line."""
    config, info = Config(notify=settings), InfoLog(Path("/dev/null"), lambda: 1)
    notes = StatusNotes(THREAD, config=config, environment={}, sender=Sender(), info=info)
    notes.start = {"name": "deploy", **start}
    found = notes.about(body, 7)
    if found is None:
        return None
    assert (found.subject, found.flow, found.timestamp_ms) == (THREAD, "deploy", 7)
    assert found.parent == (THREAD if "parent" in start else None)
    return found.event, found.message


@pytest.mark.parametrize(
    ("body", "expected", "of_child"),
    [
        (WAIT, ("waiting", "which?"), True),
        (UNKNOWN, ("unknown", "step 3 was begun and may have been performed"), True),
        (FAILED, ("failed", "boom"), False),
        (LIMIT, ("limit", "the limit"), False),
    ],
)
def test_a_status_is_notified_with_its_message(
    body: bytes, expected: tuple[str, str], of_child: bool
) -> None:
    """Of a child only what a person has to decide; nothing that was not chosen."""
    assert about(body) == expected
    assert about(body, parent=PARENT) == (expected if of_child else None)
    assert about(body, NotifySettings(command=("true",), events=("proposal",))) is None
    assert about(body, None) is None


@pytest.mark.parametrize("body", OTHERS)
def test_other_lines_are_not_notified(body: bytes) -> None:
    """A success, a person's own doing, a note, and text that looks like a status."""
    assert about(body) is None
