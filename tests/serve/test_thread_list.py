"""The list of threads: its API as plain functions, its live changes, and its view in Chromium."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate
from playwright.sync_api import Page, expect, sync_playwright
from testbed.bundles import COUNT, granted, place_script, script_of, source
from testbed.processes import end_workers
from testbed.serving import running
from uncaged_browser.browsers.installed import find_browser
from uncaged_bundles.errors import UncagedError, UsageError
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.storage.store import Store
from uncaged_engine.api import Engine
from uncaged_engine.services.listening import token_of
from uncaged_engine.state import index_file
from uncaged_serve import live_list
from uncaged_serve.api import events, threads
from uncaged_serve.api.endpoints import Asked

HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe"
PLACED = 70
PATIENCE_MS = 25_000
ASKER = source(
    "asker",
    """
    yield {"null": {"value": 1}}
    answer = yield {"ask": {"question": "go on?"}}
    return {"success": True, "message": "done"}
""",
    policy={"null": {}, "ask": {}},
)
SLEEPER = source("sleeper", "    yield {'null': {'sleep_s': 600}}\n")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A store with ended threads, one of which has hostile texts, and one that cannot be read."""
    root = tmp_path_factory.mktemp("list") / "store"
    engine = Engine(Store.open(root))
    bundle = granted(engine.store, COUNT)
    for number in range(PLACED):
        script = script_of(bundle, number=number).done(1)
        if number % 10 == 3:
            script = script.end("failed", error={"kind": "bundle", "message": HOSTILE})
        elif number % 10 == 5:
            script = script.control("pause")
        else:
            script = script.end("completed", result={"success": True, "message": f"sum {number}"})
        placed = place_script(engine.store, bundle, script)
    placed.path.write_bytes(b"\x00\xff no journal\n")
    for text in (ASKER, SLEEPER):
        engine.add("asker" if text is ASKER else "sleeper", text, accept=lambda _: True)
    yield engine
    assert end_workers(root) == []


def ask(engine: Engine, **query: Any) -> Any:
    asked = Asked(query=threads.ListQuery.model_validate(query))
    found = json.loads(json.dumps(threads.listed(engine, asked)))
    validate(found, threads.ThreadList.model_json_schema())
    return found


def act(engine: Engine, action: str, *ids: str) -> list[dict[str, Any]]:
    body = threads.ActionBody.model_validate({"action": action, "threads": list(ids)})
    found: Any = threads.act(engine, Asked(body=body))
    validate(found, threads.ActionResults.model_json_schema())
    return list(found["results"])


def test_filters_and_pages(engine: Engine) -> None:
    """Each filter gives the threads that it names, in pages that go on where the last ended; a
    thread that cannot be read hides no other.
    """
    first = ask(engine, limit="40")
    second = ask(engine, limit="40", before=first["before"])
    ids = [one["threadId"] for one in (*first["threads"], *second["threads"])]
    assert ids == sorted(set(ids), reverse=True)
    assert len(ids) == PLACED
    assert {one["status"] for one in ask(engine, status="failed")["threads"]} == {"failed"}
    both = ask(engine, status=["failed", "paused"])["threads"]
    assert {one["status"] for one in both} == {"failed", "paused"}
    assert len(ask(engine, status="corrupt")["threads"]) == 1
    assert ask(engine, text="SUM 12")["threads"][0]["message"] == "sum 12"
    assert ask(engine, flow="nothing' OR 1")["threads"] == []
    assert ask(engine, minCost="1")["threads"] == []
    for wrong in ({"status": "gone"}, {"before": "1"}):
        with pytest.raises(UsageError):
            ask(engine, **wrong)
    with pytest.raises(ValueError, match="limit"):
        ask(engine, limit="100000")
    found: Any = threads.numbers(engine, Asked())
    validate(found, threads.ThreadNumbers.model_json_schema())
    assert (sum(found["statuses"].values()), found["unread"]) == (PLACED, 0)


def test_a_page_needs_no_index(engine: Engine) -> None:
    """An index that was deleted, damaged, or of another version meanwhile changes no answer."""
    expected, path = ask(engine, status="failed"), engine.store.root / index_file.NAME

    def newer() -> None:
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA user_version = {index_file.VERSION + 1}")
        connection.close()

    for spoil in (path.unlink, lambda: path.write_bytes(b"spoilt" * 1000), newer):
        spoil()
        assert ask(engine, status="failed") == expected


def test_a_start_is_checked_like_run(engine: Engine) -> None:
    """A start is refused for what `run` refuses, and the list shows what the thread does now."""
    for wrong in ({"flow": "nothing"}, {"flow": "sleeper", "params": {"no": 1}}):
        with pytest.raises(UncagedError):
            threads.start(engine, Asked(body=threads.RunBody.model_validate(wrong)))
    with pytest.raises(ValueError, match="maxSteps"):
        threads.RunBody.model_validate({"flow": "sleeper", "maxSteps": 0})
    body = threads.RunBody.model_validate({"flow": "sleeper", "maxSeconds": 500})
    started: Any = threads.start(engine, Asked(body=body))
    validate(started, threads.StartedThread.model_json_schema())
    thread = started["threadId"]
    found = ask(engine, status="running")["threads"]
    assert [one["threadId"] for one in found] == [thread]
    while not (doing := ask(engine, status="running")["threads"][0]["doing"]):
        pass  # the worker is before its first effect
    assert doing["label"] == "null"
    results = act(engine, "kill", thread, thread, "latest", "../../etc", thread[:10])
    assert [(one["threadId"], one["done"]) for one in results] == [
        (thread, True),
        ("latest", False),
        ("../../etc", False),
        (thread[:10], False),
    ]
    [result] = act(engine, "pause", thread)
    assert (result["error"]["kind"], result["error"]["exitCode"]) == ("refused", 1)


def test_changes_of_the_list(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client gets `ready`, then what happens to threads, from any process; a client that does not
    read is dropped, and another is not.
    """
    monkeypatch.setattr(live_list, "INTERVAL_S", 0.0)

    async def until(found: Any, thread: str, status: str) -> list[dict[str, Any]]:
        seen = []
        async for event in found:
            if event.kind == "thread" and event.data["threadId"] == thread:
                seen.append(event.data)
                validate(
                    json.loads(json.dumps(event.data)), threads.ListedThread.model_json_schema()
                )
                if event.data["status"] == status:
                    return seen
        raise AssertionError(f"the stream ended: {seen}")

    async def work() -> None:
        found = events.changes(engine, Asked())
        assert (await anext(found)).kind == "ready"
        thread = await asyncio.to_thread(engine.run, "asker", prompt="")
        await until(found, thread, "waiting")
        await asyncio.to_thread(engine.pause, thread)
        await until(found, thread, "paused")
        await asyncio.to_thread(engine.resume, thread)
        await until(found, thread, "waiting")
        await asyncio.to_thread(engine.answer, thread, "yes")
        assert (await until(found, thread, "completed"))[-1]["steps"] == 2
        slow = events.changes(engine, Asked())
        assert (await anext(slow)).kind == "ready"
        next_of_slow = asyncio.ensure_future(anext(slow))
        await asyncio.sleep(0)
        monkeypatch.setattr(live_list, "MOST_WAITING", 2)
        for number in range(4):
            for client in live_list.live_list_of(engine)._clients:  # the queue is the subject
                client.put(str(number), ("thread", {"threadId": str(number)}))
        assert (await next_of_slow).kind == "dropped"
        await slow.aclose()  # type: ignore[attr-defined]
        await found.aclose()  # type: ignore[attr-defined]

    asyncio.run(asyncio.wait_for(work(), 120))


# The view


@pytest.fixture(scope="module")
def page(engine: Engine) -> Iterator[Page]:
    browser_path = find_browser(None, os.environ)
    with (
        running(["-m", "uncaged_cli", "serve", "--port", "0", "--json"], engine) as server,
        sync_playwright() as playwright,
    ):
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        browser = playwright.chromium.launch(
            executable_path=str(browser_path), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        page.goto(f"{address}#token={token_of(engine.store)}")
        yield page
        browser.close()


def row(page: Page, thread: ThreadId) -> Any:
    return page.locator(f'tr[data-thread="{thread}"]')


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_the_view_in_chromium(engine: Engine, page: Page, tmp_path: Path) -> None:
    """The list shows hostile texts as texts, loads pages as one scrolls, follows threads live,
    filters by links, and acts on several by mouse and by keys; at phone width, too.
    """
    problems: list[str] = []
    page.on("console", lambda one: problems.append(one.text) if one.type == "error" else None)
    page.on("pageerror", lambda one: problems.append(str(one)))
    page.on("dialog", lambda one: problems.append(one.message))
    rows = page.locator("table.threads tbody tr")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(rows.nth(49)).to_be_attached()
    page.mouse.wheel(0, 100_000)
    expect(rows.nth(PLACED - 1)).to_be_attached()
    # live
    first, second = engine.run("sleeper", prompt=""), engine.run("asker", prompt="")
    expect(row(page, first).locator(".badge")).to_have_text("running")
    expect(row(page, second).locator(".badge")).to_have_text("waiting")
    expect(row(page, first).locator("td.c-now")).to_have_text("null")
    # together, by mouse and by keys
    row(page, first).get_by_role("checkbox").check()
    row(page, second).locator("a.open").focus()
    page.keyboard.press("x")
    expect(page.get_by_text("2 threads selected")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(row(page, second).locator(".badge")).to_have_text("paused")
    row(page, first).get_by_role("checkbox").check()
    page.get_by_role("button", name="Kill").click()
    page.get_by_role("dialog").get_by_role("button", name="Kill").click()
    expect(row(page, first).locator(".badge")).to_have_text("killed")
    page.screenshot(path=tmp_path / "list.png")
    # filters
    page.get_by_role("link", name="failed").first.click()
    expect(rows).to_have_count(PLACED // 10)
    expect(rows.first.locator("td.c-now")).to_contain_text("<img src=x onerror=alert(1)>\\u202e")
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.screenshot(path=tmp_path / "phone.png")
    page.get_by_role("searchbox").fill("no such thing")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No thread fits.")).to_be_visible()
    assert problems == []
