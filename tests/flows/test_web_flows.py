"""Web flows in a real browser: operations of a thread, a killed worker, a killed session, pages
that lead elsewhere, secrets.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from testbed.bundles import granted, source
from testbed.processes import end, workers_of
from testbed.steering import finish, settle, written
from testbed.webserver import Reply, Seen, WebServer, serving, text
from uncaged_browser.session.address import DEFAULT_SESSION, profile_path
from uncaged_browser.session.client import SessionClient
from uncaged_browser.session.messages import KEPT
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Cut, Engine, RunOptions
from uncaged_engine.sandbox.scratch import BROWSER_UIDS, SCRIPT_UIDS
from uncaged_engine.services.blobs import BlobDirectory
from uncaged_engine.threads.housekeeping import prune

pytestmark = [pytest.mark.slow, pytest.mark.needs("chromium")]

PAGE = """<!doctype html><title>Counter</title><h1>Counter</h1>
<label>Name <input id=name></label><label>Password <input id=secret type=password></label>
<button onclick="document.title = 'Clicked ' + ++count">Add</button>
<button onclick="document.title = document.getElementById('secret').value.length">Measure</button>
<p id=shown></p><a href="OTHER/next">Leave</a><img src="OTHER/picture.png">
<script>let count = 0;</script>"""
PRESS = '{"browser": {"do": "click", "target": {"role": "button", "name": "Add"}}}'


@pytest.fixture
def site() -> Iterator[WebServer]:
    """A site whose page counts clicks, and that links to another name of this machine."""

    def answer(request: Seen) -> Reply:
        other = f"http://localhost:{request.headers['host'].rpartition(':')[2]}"
        return text(PAGE.replace("OTHER", other), "text/html; charset=utf-8")

    with serving(answer) as server:
        yield server


@pytest.fixture
def engine(store: Store) -> Iterator[Engine]:
    """The engine; its browser session is ended after the test, and the profile removed."""
    yield Engine(store)
    for session in workers_of(store.root):
        end([child.pid for child in session.children(recursive=True)] + [session.pid])
    shutil.rmtree(profile_path(store, DEFAULT_SESSION).parent, ignore_errors=True)


def web_flow(body: str, site: WebServer, **limits: object) -> bytes:
    policy = {"browser": {"hosts": [site.host], "private": True, **limits}, "ask": {}}
    parameters = {"type": "object", "properties": {"url": {"type": "string"}}}
    return source("web", body, kind="web", policy=policy, parameters=parameters)


def start(engine: Engine, body: str, site: WebServer, **limits: object) -> ThreadId:
    granted(engine.store, web_flow(body, site, **limits))
    return engine.run("web", prompt="", params={"url": f"{site.url}/"})


def session_of(engine: Engine) -> psutil.Process:
    """The process of the browser session."""
    [session] = [
        process
        for process in workers_of(engine.store.root)
        if "uncaged_browser.session" in " ".join(process.cmdline()[:6])
    ]
    return session


def test_a_web_flow_runs_and_its_journal_proves_it(engine: Engine, site: WebServer) -> None:
    """Each operation is a step with its outcome; the thread verifies, and its context is closed."""
    thread = start(
        engine,
        f"""
    yield {{"browser": {{"do": "navigate", "url": input["params"]["url"]}}}}
    yield {{"browser": {{"do": "fill", "target": {{"label": "Name"}}, "text": "Ada"}}}}
    clicked = yield {PRESS}
    at = yield {{"browser": {{"do": "address"}}}}
    view = yield {{"browser": {{"do": "view"}}}}
    return {{"success": True, "message": at["title"], "data": [clicked["alternative"], "Ada" in view["text"]]}}
""",
        site,
    )
    assert finish(engine, thread) == {"success": True, "message": "Clicked 1", "data": [0, True]}
    assert engine.verify(thread).ok
    with SessionClient.open(engine.store, DEFAULT_SESSION) as client:
        while client.status()["threads"]:  # closed within seconds of the thread's end
            pass
    browser = session_of(engine).children(recursive=True)
    if os.geteuid() == 0:
        owners = set()
        for child in browser:
            with suppress(psutil.NoSuchProcess):  # a renderer of the closed page ends about now
                if "chrom" in child.name():
                    owners.add(child.uids().real)
        assert owners and owners <= {*BROWSER_UIDS}, "a browser of root's runs as another user"
        assert owners.isdisjoint(SCRIPT_UIDS), "its threads do not count for a script"


def test_a_killed_worker_leaves_the_tab_open(engine: Engine, site: WebServer) -> None:
    """After SIGKILL of the worker the thread goes on in the same tab, and nothing is clicked
    twice.
    """
    thread = start(
        engine,
        f"""
    yield {{"browser": {{"do": "navigate", "url": input["params"]["url"]}}}}
    yield {PRESS}
    yield {{"ask": {{"question": "Go on?"}}}}
    yield {PRESS}
    at = yield {{"browser": {{"do": "address"}}}}
    return {{"success": True, "message": at["title"]}}
""",
        site,
    )
    assert settle(engine, thread)["status"] == "waiting"
    session = session_of(engine)
    assert end([one.pid for one in workers_of(engine.store.root) if one.pid != session.pid]) == []
    engine.answer(thread, "yes")
    assert finish(engine, thread)["message"] == "Clicked 2"
    assert session_of(engine) == session


def kill_session(engine: Engine) -> psutil.Process:
    """Kill the session of a thread that waits; no process of its browser is left."""
    session = session_of(engine)
    children = session.children(recursive=True)
    os.kill(session.pid, signal.SIGKILL)
    _, left = psutil.wait_procs(children, timeout=60)
    assert left == [], "a killed session leaves no browser behind"
    return session


def test_a_killed_session_is_restored_from_the_checkpoint(engine: Engine, site: WebServer) -> None:
    """After SIGKILL of the session a thread that has only read goes on at its last page."""
    thread = start(
        engine,
        f"""
    yield {{"browser": {{"do": "navigate", "url": input["params"]["url"]}}}}
    yield {{"ask": {{"question": "Go on?"}}}}
    yield {PRESS}
    at = yield {{"browser": {{"do": "address"}}}}
    return {{"success": True, "message": at["title"]}}
""",
        site,
    )
    assert settle(engine, thread)["status"] == "waiting"
    first = kill_session(engine)
    engine.answer(thread, "yes")
    assert finish(engine, thread)["message"] == "Clicked 1"
    assert session_of(engine) != first
    assert engine.verify(thread).ok


def test_a_lost_page_that_was_acted_on_is_not_restored(engine: Engine, site: WebServer) -> None:
    """After a click a lost page is not made again unasked: the thread is `unknown`, a fork at the
    checkpoint goes on from there, also after `prune`, and `--redo` clicks again.
    """
    thread = start(
        engine,
        f"""
    yield {{"browser": {{"do": "navigate", "url": input["params"]["url"]}}}}
    yield {PRESS}
    yield {{"ask": {{"question": "Go on?"}}}}
    yield {PRESS}
    at = yield {{"browser": {{"do": "address"}}}}
    return {{"success": True, "message": at["title"]}}
""",
        site,
    )
    assert settle(engine, thread)["status"] == "waiting"
    kill_session(engine)
    engine.answer(thread, "yes")
    stopped = settle(engine, thread)
    assert stopped["status"] == "unknown"
    message = engine.thread(thread).summary.message
    assert "step 2 acted on its page after the checkpoint of step 1" in message
    assert "--redo" in message and "--skip" in message and f"fork {thread} --at 1" in message
    with pytest.raises(RefusedError, match="--redo"):
        engine.resume(thread)
    unnamed = BlobDirectory(engine.store.blobs).put(b"named by no journal")
    for blob in engine.store.blobs.iterdir():
        os.utime(blob, (0, 0))
    prune(engine, older_than_ms=0, dry_run=False)
    assert not (engine.store.blobs / unnamed).exists()
    fork = engine.fork(thread, cut=Cut(at=1))
    assert settle(engine, fork)["status"] == "waiting"
    engine.answer(fork, "yes")
    assert finish(engine, fork)["message"] == "Clicked 2"
    engine.resume(thread, redo=True)
    assert finish(engine, thread)["message"] == "Clicked 2"
    assert engine.verify(thread).ok


def test_a_step_that_was_cut_off_is_not_repeated(engine: Engine) -> None:
    """A worker that was killed in step 9 of 20 leaves the thread `unknown`: nothing is clicked
    twice, and a fork at the checkpoint does all 18 clicks.
    """
    arrived, released = threading.Event(), threading.Event()
    clicks: list[str] = []

    def answer(request: Seen) -> Reply:
        if request.path.startswith("/page/"):
            clicks.append(request.path)
            if clicks == [f"/page/{number}" for number in range(1, 9)]:
                arrived.set()
                released.wait(60)
        number = int(request.path.rpartition("/")[2] or 0)
        return text(
            f"<!doctype html><title>{number}</title><a href=/page/{number + 1}>Next</a>",
            "text/html",
        )

    click = '{"browser": {"do": "click", "target": {"role": "link", "name": "Next"}, "wait": True}}'
    body = f"""
    yield {{"browser": {{"do": "navigate", "url": input["params"]["url"]}}}}
    for _ in range(18):
        yield {click}
    at = yield {{"browser": {{"do": "address"}}}}
    return {{"success": True, "message": at["title"]}}
"""
    with serving(answer) as site:
        thread = start(engine, body, site)
        assert arrived.wait(60), "step 9 clicks"
        session = session_of(engine)
        end([one.pid for one in workers_of(engine.store.root) if one.pid != session.pid])
        released.set()
        view = engine.thread(thread)
        assert (view.summary.status, view.summary.steps) == ("unknown", 8)
        with pytest.raises(RefusedError, match="step 9"):
            engine.resume(thread)
        assert clicks == [f"/page/{number}" for number in range(1, 9)], "each click once"
        assert finish(engine, engine.fork(thread, cut=Cut(at=1)))["message"] == "18"
        assert clicks[8:] == [f"/page/{number}" for number in range(1, 19)]


@pytest.mark.parametrize(
    "leaving",
    [
        '{"browser": {"do": "click", "target": {"role": "link", "name": "Leave"}, "wait": True}}',
        '{"browser": {"do": "follow", "words": "leave"}}',
        '{"browser": {"do": "navigate", "url": OTHER}}',
        '{"browser": {"do": "open", "url": OTHER}}',
    ],
)
def test_no_way_leads_out_of_the_scope(engine: Engine, site: WebServer, leaving: str) -> None:
    """A page of another host is refused however it is reached, and nothing is asked of that
    host.
    """
    other = repr(f"http://localhost:{site.port}/next")
    thread = start(
        engine,
        f"""
    loaded = yield {{"browser": {{"do": "navigate", "url": input["params"]["url"]}}}}
    refused = loaded.get("refused", [])
    try:
        yield {leaving.replace("OTHER", other)}
    except EffectError as failure:
        return {{"success": True, "message": failure.error["kind"], "data": refused}}
""",
        site,
    )
    result = finish(engine, thread)
    assert result["message"] == "blocked"
    assert any("localhost" in one for one in result["data"]), "what the page loads is refused, too"
    assert {request.headers["host"] for request in site.seen} == {site.host}


def test_hosts_limit_the_kept_tabs_too(engine: Engine, site: WebServer) -> None:
    """A flow that uses the session's own tabs sees and reads those of its hosts alone."""
    other = f"http://localhost:{site.port}/private"
    with SessionClient.open(engine.store, DEFAULT_SESSION) as client:
        client.perform(KEPT, {"do": "open", "url": other}, 10)
    body = f"""
    kinds = []
    listed = yield {{"browser": {{"do": "tabs"}}}}
    for operation in ({{"do": "text"}}, {{"do": "navigate", "url": {other!r}}}, {{"do": "switch", "words": "Counter"}}):
        try:
            yield {{"browser": operation}}
            kinds.append("done")
        except EffectError as failure:
            kinds.append(failure.error["kind"])
    opened = yield {{"browser": {{"do": "open", "url": input["params"]["url"]}}}}
    return {{"success": True, "message": " ".join(kinds), "data": [[tab["url"] for tab in listed], opened["title"]]}}
"""
    result = finish(engine, start(engine, body, site, profile="kept"))
    assert result["message"] == "blocked blocked not-found"
    assert result["data"] == [["about:blank"], "Counter"]


def test_kept_tabs_need_the_permission_for_private_addresses(
    engine: Engine, site: WebServer
) -> None:
    """A policy that uses the session's own tabs says that they reach this machine."""
    body = """
    try:
        yield {"browser": {"do": "tabs"}}
    except EffectError as failure:
        return {"success": True, "message": failure.error["kind"]}
"""
    thread = start(engine, body, site, profile="kept", private=False)
    assert finish(engine, thread)["message"] == "policy"


def test_a_full_disk_for_screenshots_ends_nothing(engine: Engine) -> None:
    """A picture that cannot be kept is reported in its step, and the thread goes on."""
    blobs = engine.store.blobs

    def answer(_: Seen) -> Reply:
        if blobs.is_dir():  # the worker runs, and its pictures have no place from now on
            blobs.rename(blobs.with_name("moved"))
            blobs.write_text("")
        return text(PAGE, "text/html; charset=utf-8")

    body = f"""
    yield {{"browser": {{"do": "open", "url": input["params"]["url"]}}}}
    yield {PRESS}
    at = yield {{"browser": {{"do": "address"}}}}
    return {{"success": True, "message": at["title"]}}
"""
    with serving(answer) as full:
        granted(engine.store, web_flow(body, full, profile="kept"))
        options = RunOptions(screenshots=True)
        thread = engine.run("web", prompt="", params={"url": f"{full.url}/"}, options=options)
        try:
            assert finish(engine, thread)["message"] == "Clicked 1"
        finally:
            blobs.unlink()
            blobs.with_name("moved").rename(blobs)
    problems = [record.get("screenshotProblem", "") for record in engine.thread(thread).records]
    assert sum("Not a directory" in problem for problem in problems) == 2, problems
    assert engine.verify(thread).ok


def test_a_page_that_the_proxy_refuses_is_blocked(engine: Engine, site: WebServer) -> None:
    """A page of this machine is refused without the permission for private addresses."""
    body = """
    try:
        yield {"browser": {"do": "navigate", "url": input["params"]["url"]}}
    except EffectError as failure:
        return {"success": True, "message": failure.error["kind"]}
"""
    assert finish(engine, start(engine, body, site, private=False))["message"] == "blocked"
    assert site.seen == []


def test_a_secret_reaches_its_field_and_no_journal(
    engine: Engine, site: WebServer, tmp_path: Path
) -> None:
    """A secret is typed into a page of its host only, and is in no file of the store."""
    value = tmp_path / "value"
    value.write_text("correct horse battery")
    engine.store.config_path.write_text(f"secrets: {{LOGIN: {{file: {value}}}}}\n")
    body = """
    yield {"browser": {"do": "navigate", "url": input["params"]["url"]}}
    try:
        yield {"browser": {"do": "fill", "target": {"label": "Password"}, "text": "secret:LOGIN"}}
    except EffectError as failure:
        return {"success": False, "message": failure.error["message"]}
    yield {"browser": {"do": "click", "target": {"role": "button", "name": "Measure"}}}
    at = yield {"browser": {"do": "address"}}
    view = yield {"browser": {"do": "view"}}
    return {"success": True, "message": at["title"], "data": view["text"]}
"""
    thread = start(Engine(engine.store), body, site, secrets={"LOGIN": [site.host]})
    result = finish(engine, thread)
    assert result["message"] == str(len("correct horse battery"))
    assert "secret:LOGIN" in result["data"], "the page view shows the field's content"
    assert "correct horse" not in str(written(engine, thread))
    refused = start(Engine(engine.store), body, site, secrets={"LOGIN": ["bank.test"]})
    assert "does not bind secret:LOGIN" in finish(engine, refused)["message"]
