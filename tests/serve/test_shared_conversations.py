"""Conversations on the pages of two servers of one shared store, with a real worker."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect, sync_playwright
from testbed.bundles import source
from testbed.foreground import environment
from testbed.postgres import PostgresServer
from uncaged_browser.browsers.installed import find_browser
from uncaged_bundles.storage.store import Store
from uncaged_bundles.version import __version__
from uncaged_cluster.store import open_store
from uncaged_dispatcher.wire.client import DispatcherClient, RemoteError
from uncaged_engine.services.listening import token_of
from uncaged_engine.shared_engine import shared_engine

PATIENCE_S = 60.0
EXIT_WAITING = 8
CAKES = source(
    "cakes",
    """
    answer = yield {"ask": {"question": "how many?"}}
    return {"success": True, "message": f"{answer} cakes"}
""",
    policy={"ask": {}},
    patterns=["bake (some)? cakes"],
)


@dataclass
class Served:
    """A server of one machine, and a client that follows. records: those that came, by number."""

    process: subprocess.Popen[bytes]
    address: str
    token: str
    records: list[Mapping[str, Any]] = field(default_factory=list)
    news: queue.SimpleQueue[Mapping[str, Any]] = field(default_factory=queue.SimpleQueue)

    def client(self) -> DispatcherClient:
        return DispatcherClient(f"{self.address}dispatcher", self.token, notice=self._notice)

    def _notice(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "record":
            self.news.put(params["record"])

    def until(self, key: str) -> Mapping[str, Any]:
        """Return the next record with *key*."""
        while True:
            self.records.append(self.news.get(timeout=PATIENCE_S))
            if key in self.records[-1]:
                return self.records[-1]


@contextmanager
def process(verb: list[str], address: str, home: Path) -> Iterator[subprocess.Popen[bytes]]:
    home.mkdir(exist_ok=True)
    words = [sys.executable, "-m", "uncaged_cli", *verb, "--store", address]
    variables = {**environment(), "UNCAGED_WORKFLOW_HOME": str(home)}
    with subprocess.Popen(words, env=variables, cwd=home, stdout=subprocess.PIPE) as found:
        try:
            yield found
        finally:
            found.kill()


@contextmanager
def serving(address: str, home: Path) -> Iterator[Served]:
    with process(["serve", "--port", "0", "--json"], address, home) as found:
        assert found.stdout is not None
        ready = json.loads(found.stdout.readline())
        yield Served(found, ready["address"], token_of(Store.open(home)))


@pytest.fixture(scope="module")
def address(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A store with one flow, and a worker."""
    homes = tmp_path_factory.mktemp("homes")
    found = postgres.address(postgres.new_schema())
    with closing(open_store(found, create=True, is_visible=True)):
        pass
    with shared_engine(
        found, Store.open(homes / "maker"), is_visible=True, report=lambda _: None
    ) as engine:
        engine.registry.seed(f"{__version__} none", list, now_ms=0)
        engine.add("cakes", CAKES, accept=lambda _: True)
    with process(["work"], found, homes / "worker"):
        yield found


@pytest.mark.slow
def test_two_servers_show_one_conversation(
    address: str, postgres: PostgresServer, tmp_path: Path
) -> None:
    """Each record reaches the clients of both servers, once and in order, also after the loss of
    all connections to the database. A server that holds the conversation is named to clients of the
    other one, which goes on when it has left or is dead.
    """
    with ExitStack() as stack:
        one, two = (stack.enter_context(serving(address, tmp_path / name)) for name in "ab")
        here, there = (stack.enter_context(served.client()) for served in (one, two))
        id = here.call("new", name="both")["conversation"]
        for client in (here, there):
            assert client.follow(id, after=0) == id

        request = here.submit("bake cakes", conversation=id)
        asked = one.until("question")
        assert two.until("question") == asked
        with pytest.raises(RemoteError, match=f"process {one.process.pid}"):
            there.submit("bake cakes", conversation=id)
        with pytest.raises(RemoteError, match=f"process {one.process.pid}"):
            answer(there, id, asked, "9")
        answer(here, id, asked, "2")
        assert request.result(PATIENCE_S)["message"] == "2 cakes"
        assert two.until("result") == one.until("result")

        # the first server has left by itself
        with postgres.connect() as rows:
            rows.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE starts_with(application_name, 'uncaged-workflow ')"
            )
        submit_until_accepted(there, id)
        asked = two.until("question")
        two.process.kill()
        assert one.until("question") == asked
        answer(here, id, asked, "3")
        assert one.until("result")["result"]["message"] == "3 cakes"

        last = two.records[-1]["seq"]
        again = here.call("log", conversation=id, after=last)["records"]
        records = [*two.records, *again]
        assert records == one.records
        assert [record["seq"] for record in records] == list(range(1, len(records) + 1))


def submit_until_accepted(client: DispatcherClient, id: str) -> None:
    """Submit a sentence; the first statement after a loss of the connection is refused."""
    while True:
        try:
            client.submit("bake cakes", conversation=id)
            return
        except RemoteError as problem:
            assert problem.kind == "ConnectionLost", problem


def answer(client: DispatcherClient, id: str, asked: Mapping[str, Any], value: str) -> None:
    fields = {"request": asked["of"], "question": asked["seq"], "value": {"value": value}}
    client.call("answer", conversation=id, **fields)


@contextmanager
def browsing(*addresses: str) -> Iterator[list[Page]]:
    """Open a page at each address in Chromium."""
    with sync_playwright() as playwright:
        path = find_browser(None, os.environ)
        browser = playwright.chromium.launch(executable_path=str(path), args=["--no-sandbox"])
        expect.set_options(timeout=PATIENCE_S * 1000)
        pages = []
        for one in addresses:
            pages.append(browser.new_context().new_page())
            pages[-1].set_default_timeout(PATIENCE_S * 1000)
            pages[-1].goto(one)
        yield pages
        browser.close()


@pytest.mark.slow
@pytest.mark.needs("chromium")
def test_two_pages_show_one_conversation(address: str, tmp_path: Path) -> None:
    """A question that a command left open is shown on the pages of two servers, and answered on
    one; a sentence that is sent on one is shown on the other, which is refused meanwhile with the
    name of the holder.
    """
    left = "bake some cakes"
    with process(["conversation", "new", "left"], address, tmp_path / "a") as made:
        assert made.wait(PATIENCE_S) == 0
    words = ["do", left, "--conversation", "left"]
    with process(words, address, tmp_path / "c") as asking:
        assert asking.wait(PATIENCE_S) == EXIT_WAITING
    with ExitStack() as stack:
        servers = [stack.enter_context(serving(address, tmp_path / name)) for name in "ab"]
        opened = [f"{one.address}#token={one.token}" for one in servers]
        pages = stack.enter_context(browsing(*opened))
        for page in pages:
            page.evaluate("location.hash = '#/ask'")
            expect(page.locator(".conversation")).to_contain_text("how many?")
        here, there = pages
        fill(here, "4")
        for page in pages:
            expect(page.locator(".result")).to_contain_text("4 cakes")
        here.get_by_label("Sentence").fill("bake cakes")
        here.get_by_role("button", name="Send").click()
        expect(there.get_by_role("form", name="Question")).to_contain_text("how many?")
        there.get_by_label("Sentence").fill("bake cakes")
        there.get_by_role("button", name="Send").click()
        expect(there.get_by_role("alert").first).to_contain_text(
            f"process {servers[0].process.pid}"
        )
        fill(here, "5")
        for page in pages:
            expect(page.locator(".result").last).to_contain_text("5 cakes")


def fill(page: Page, value: str) -> None:
    """Answer the question on a page."""
    question = page.get_by_role("form", name="Question")
    question.get_by_label("Answer").fill(value)
    question.get_by_role("button", name="Answer").click()
