"""Effects of the web inside real threads: what is journalled, what a crash leaves, what a replay
asks of the network.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping

import pytest
from testbed.bundles import granted, source
from testbed.processes import end_workers
from testbed.steering import finish, settle, wait_for, written
from testbed.webserver import Reply, Seen, WebServer, data, serving, text
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine, RunOptions

pytestmark = pytest.mark.slow

BODY = """
    heard = []
    for effect in input["params"]["plan"]:
        try:
            heard.append((yield effect))
        except EffectError as error:
            heard.append(error.error)
    return {"success": True, "message": "", "data": heard}
"""


def start(
    engine: Engine,
    server: WebServer,
    *plan: object,
    environment: Mapping[str, str] | None = None,
    **policy: object,
) -> ThreadId:
    reach = {"hosts": [server.host], "private": True}
    granted(
        engine.store,
        source("web", BODY, policy={"http": {**reach, **policy}, "fetch": reach, "all": {}}),
    )
    return engine.run(
        "web",
        prompt="go",
        params={"plan": list(plan)},
        options=RunOptions(environment=environment or os.environ),
    )


def test_a_retry_covers_a_busy_server(engine: Engine) -> None:
    """A 429 or 5xx is tried again where the request may be sent twice, not before `Retry-After`;
    its last answer is the outcome.
    """
    answers = {
        "/busy": iter([text("", status=429, Retry_After="1"), text("there")]),
        "/down": iter([text("", status=503), text("", status=503)]),
        "/post": iter([text("", status=503)]),
        "/never": iter([text("", status=503, Retry_After="86400")]),
        "/other": iter([text("", status=503)]),
    }
    retry = {"times": 1, "pause_s": 0}
    times: dict[str, list[float]] = {path: [] for path in answers}

    def answer(seen: Seen) -> Reply:
        times[seen.path].append(time.monotonic())
        return next(answers[seen.path])

    with serving(answer) as server:
        bodies: list[dict[str, object]] = [
            {"url": f"{server.url}{path}", "retry": retry} for path in answers
        ]
        bodies[2]["method"] = "POST"
        bodies[4]["retry"] = {**retry, "on": ["timeout"]}
        thread = start(engine, server, *({"http": body} for body in bodies))
        found = finish(engine, thread)["data"]
        assert engine.verify(thread).ok
    assert [one["status"] for one in found] == [200, 503, 503, 503, 503]
    assert [len(seen) for seen in times.values()] == [2, 2, 1, 1, 1]
    assert times["/busy"][1] - times["/busy"][0] >= 1
    errors = [record["error"] for record in written(engine, thread) if "attempt" in record]
    assert errors == [
        {"kind": "status", "message": "HTTP 429"},
        {"kind": "status", "message": "HTTP 503"},
    ]


def test_a_thread_asks_once_and_its_replay_not_at_all(engine: Engine) -> None:
    """Outcomes come from the journal; several at once have keys of their own; the retry of an
    effect is visible.
    """
    statuses = iter([503, 200])

    def script(seen: Seen) -> Reply:
        if seen.path == "/flaky":
            return text("there", status=next(statuses))
        return data({"path": seen.path, "key": seen.headers.get("idempotency-key")})

    with serving(script) as server:
        post = {"http": {"method": "POST", "url": f"{server.url}/a"}}
        flaky = {
            "fetch": {
                "url": f"{server.url}/flaky",
                "retry": {"times": 1, "on": ["status"], "pause_s": 0},
            }
        }
        thread = start(
            engine,
            server,
            post,
            {"all": {"effects": [post, post]}},
            flaky,
            {"fetch": {"url": f"{server.url}/page"}},
        )
        first, together, retried, page = finish(engine, thread)["data"]
        count = len(server.seen)
        assert engine.verify(thread).ok
        assert len(server.seen) == count
    assert first["json"] == {"path": "/a", "key": f"{thread}/1"}
    assert [one["outcome"]["json"]["key"] for one in together] == [f"{thread}/2.0", f"{thread}/2.1"]
    assert retried["text"] == "there"
    assert [record["because"] for record in written(engine, thread) if "attempt" in record] == [
        "retry"
    ]
    assert page["text"].startswith('{"path": "/page"')


def test_a_large_answer_goes_through_the_journal(engine: Engine) -> None:
    """An answer as large as the limit allows is journaled and replayed."""
    size = 5 << 20
    with serving(
        lambda _: Reply(
            headers=[("Content-Type", "application/octet-stream")],
            body=b"\0" + os.urandom(size - 1),
        )
    ) as server:
        thread = start(
            engine,
            server,
            {"http": {"url": server.url}},
            {"http": {"url": server.url, "method": "HEAD"}},
        )
        data_of = finish(engine, thread)["data"]
        assert len(data_of[0]["base64"]) == (size + 2) // 3 * 4
        assert engine.verify(thread).ok


@pytest.mark.parametrize(
    ("method", "status"), [("GET", "interrupted"), ("PUT", "interrupted"), ("POST", "unknown")]
)
def test_a_crash_in_the_middle_of_a_request(engine: Engine, method: str, status: str) -> None:
    """A request that may be repeated is sent again with the same key; any other one waits for a
    person.
    """
    reached = threading.Event()

    def script(seen: Seen) -> Reply:
        if len(server.seen) == 1:
            reached.set()
            server.ended.wait()
        return data(seen.headers.get("idempotency-key"))

    with serving(script) as server:
        thread = start(engine, server, {"http": {"method": method, "url": server.url}})
        reached.wait()
        end_workers(engine.store.root)
        assert engine.thread(thread).summary.status == status
        if status == "unknown":
            with pytest.raises(RefusedError, match="--redo"):
                engine.resume(thread)
            assert len(server.seen) == 1
        engine.resume(thread, redo=status == "unknown")
        assert finish(engine, thread)["data"][0]["status"] == 200
        keys = [seen.headers.get("idempotency-key") for seen in server.seen]
        assert keys == [None if method == "GET" else f"{thread}/1"] * 2


def test_a_kill_reaches_a_request(engine: Engine) -> None:
    """A kill ends a request at once; resume sends it again."""
    reached = threading.Event()

    def script(_: Seen) -> Reply:
        if len(server.seen) == 1:
            reached.set()
            server.ended.wait()
        return text("now")

    with serving(script) as server:
        thread = start(engine, server, {"http": {"url": server.url, "timeout_s": 600}})
        wait_for(engine, thread, lambda event: event.kind == "record" and "intent" in event.body)
        reached.wait()
        engine.kill(thread)
        assert settle(engine, thread)["status"] == "killed"
        engine.resume(thread)
        assert finish(engine, thread)["data"][0]["text"] == "now"


def test_a_secret_is_in_no_file_of_the_store(engine: Engine) -> None:
    """A secret of the caller's environment that went to the server and came back is in no file."""
    engine.store.config_path.write_text("secrets: {KEY: {env: MY_KEY}}\n")
    value = "planted-0123456789"
    with serving(lambda seen: data(dict(seen.headers))) as server:
        body = {"url": server.url, "headers": {"Authorization": "Bearer secret:KEY"}}
        thread = start(
            engine,
            server,
            {"http": body},
            environment={"MY_KEY": value},
            secrets={"KEY": [server.host]},
        )
        assert finish(engine, thread)["data"][0]["json"]["authorization"] == "Bearer secret:KEY"
        assert server.seen[0].headers["authorization"] == f"Bearer {value}"
    found = [
        path
        for path in engine.store.root.rglob("*")
        if path.is_file() and value.encode() in path.read_bytes()
    ]
    assert found == []
