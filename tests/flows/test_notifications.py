"""Notifications of real threads: each status once, in the journal before it is sent, and never in a
thread's way.
"""

from __future__ import annotations

import queue
import threading
from typing import Any

import pytest
from testbed.bundles import PLANNED, granted, source
from testbed.steering import finish, settle
from testbed.webserver import Reply, Seen, serving
from uncaged_engine.api import Engine, RunOptions

pytestmark = pytest.mark.slow

ASKER = source(
    "asker",
    """
    answer = yield {"ask": {"question": "which colour?"}}
    return {"success": True, "message": answer}
""",
    policy={"ask": {}},
)
CALLER = source(
    "caller",
    """
    for name in ("planned", "asker"):
        try:
            yield {"flow": {"name": name, "params": {"plan": ["raise"]}}}
        except EffectError as error:
            pass
    return {"success": True, "message": "caught"}
""",
    policy={"flow": {}},
)


def test_each_status_is_notified_once_and_blocks_no_thread(engine: Engine) -> None:
    """The first delivery hangs until all threads are done. A question, a failure and a limit
    arrive; the failure of a child does not, its question does.
    """
    arrived: queue.Queue[Any] = queue.Queue()
    held = threading.Event()

    def script(seen: Seen) -> Reply:
        arrived.put(seen.json)
        if seen.json["event"] == "waiting":
            held.wait()
        return Reply(status=204)

    def next_event(subject: str, event: str) -> dict[str, Any]:
        found: dict[str, Any] = arrived.get(timeout=120)
        assert (found["subject"], found["event"]) == (subject, event)
        return found

    for text in (ASKER, CALLER, PLANNED):
        granted(engine.store, text)
    keys = engine.store.root / "keys"
    keys.mkdir(mode=0o700)
    (keys / "HOOK").write_text("a secret of the webhook")
    with serving(script) as web:
        engine.store.config_path.write_text(
            f"notify: {{webhook: {{url: '{web.url}', secret: 'secret:HOOK'}}, timeoutSeconds: 60}}\n"
        )
        try:
            asking = engine.run("asker", prompt="")
            assert next_event(asking, "waiting")["message"] == "which colour?"
            engine.answer(asking, "red")
            assert finish(engine, asking)["message"] == "red", "while its notification hangs"
            failing = engine.run("planned", prompt="", params={"plan": ["raise"]})
            assert "as planned" in next_event(failing, "failed")["message"]
            limited = engine.run(
                "planned",
                prompt="",
                params={"plan": [{"null": {}}, {"null": {}}]},
                options=RunOptions(max_steps=1),
            )
            assert "1 step" in next_event(limited, "limit")["message"]
            engine.resume(limited, options=RunOptions(max_steps=9))
            finish(engine, limited)
            calling = engine.run("caller", prompt="")
            asked = arrived.get(timeout=120)
            assert (asked["event"], asked["parentThreadId"]) == ("waiting", calling)
            engine.answer(asked["subject"], "blue")
            assert finish(engine, calling)["message"] == "caught"
        finally:
            held.set()
        assert arrived.empty()
    for thread, words in ((asking, ["waiting", "wait"]), (failing, ["failed", "failed"])):
        records = engine.thread(thread).records
        shown = [
            one.get("notified") or one.get("control") or one.get("end")
            for one in records
            if "seq" not in one or "control" in one
        ]
        assert shown[:2] == words, "the note is in front of its status"
        assert engine.verify(thread).ok
    assert settle(engine, failing)["status"] == "failed"
