"""Block flows on real workers, against a real API and a real model server on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from testbed import modelserver, webserver
from testbed.modelserver import says
from testbed.processes import end_workers
from testbed.steering import finish, settle
from testbed.webserver import Reply, Seen, WebServer
from uncaged_bundles.builders.recipes.recipe import read_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.ids import ThreadId
from uncaged_engine.api import Engine
from uncaged_engine.effect_kinds import KNOWN

pytestmark = pytest.mark.slow

PAGE = "<html><head><title>AI</title></head><body><h1>Artificial Intelligence</h1><p>It has <b>many</b> benefits.</p></body></html>"
SUMMARY = "• AI improves efficiency\n• AI enables automation\n• AI reduces costs"


def example(server: WebServer) -> dict[str, object]:
    """AnythingLLM's documented flow, with its API on loopback, which the policy has to allow."""
    return {
        "name": "Search and Summarize",
        "description": "Search the web for information and provide a summary",
        "active": True,
        "steps": [
            {
                "type": "start",
                "config": {
                    "variables": [
                        {"name": "query", "value": "", "description": "Search query to look up"}
                    ]
                },
            },
            {
                "type": "apiCall",
                "config": {
                    "url": f"{server.url}/search?q=${{query}}",
                    "method": "GET",
                    "responseVariable": "searchResults",
                },
            },
            {
                "type": "webScraping",
                "config": {
                    "url": "${searchResults.topResult.url}",
                    "resultVariable": "pageContent",
                },
            },
            {
                "type": "llmInstruction",
                "config": {
                    "instruction": "Summarize the following content in 3 bullet points: ${pageContent}",
                    "resultVariable": "summary",
                },
            },
        ],
        "policy": {"fetch": {"private": True}},
    }


def add(engine: Engine, name: str, recipe: object) -> None:
    source = build_flow(read_recipe(json.dumps(recipe).encode(), "flow.json"), KNOWN).source
    engine.add(name, source, accept=lambda _: True)


def test_the_documented_example_gives_the_documented_result(engine: Engine) -> None:
    """Search, page and model answer on loopback; every block's result and every variable are in the
    result object.
    """

    def answer(seen: Seen) -> Reply:
        if seen.path.startswith("/search"):
            return webserver.data(
                {"topResult": {"url": f"{web.url}/ai-benefits"}, "asked": seen.path}
            )
        return webserver.text(PAGE, "text/html")

    with webserver.serving(answer) as web, modelserver.serving([says(SUMMARY)]) as model:
        engine.store.config_path.write_text(
            f"models:\n  m: {{use: openai, baseUrl: {model.base_url('openai')}, model: tiny}}\n"
        )
        add(engine, "search-and-summarize", example(web))
        thread = engine.run(
            "search-and-summarize", prompt="", params={"query": "artificial intelligence benefits"}
        )
        result = finish(engine, thread)
        [asked] = model.asked
    found = {
        "topResult": {"url": f"{web.url}/ai-benefits"},
        "asked": "/search?q=artificial%20intelligence%20benefits",
    }
    page = result["data"]["variables"]["pageContent"]
    assert "# Artificial Intelligence" in page
    assert "**many**" in page
    assert (
        asked["messages"][-1]["content"]
        == f"Summarize the following content in 3 bullet points: {page}".strip()
    )
    query = {"query": "artificial intelligence benefits"}
    assert result == {
        "success": True,
        "message": SUMMARY,
        "data": {
            "success": True,
            "results": [
                {"success": True, "result": query},
                {"success": True, "result": found},
                {"success": True, "result": page},
                {"success": True, "result": SUMMARY},
            ],
            "variables": {**query, "searchResults": found, "pageContent": page, "summary": SUMMARY},
            "directOutput": None,
        },
    }
    assert engine.verify(thread).ok


def test_a_policy_without_the_private_network_refuses_it(engine: Engine) -> None:
    """An address that the model's page or an API gave leads to no machine of one's own; the block
    and the rule are named.
    """
    with webserver.serving(
        lambda _: webserver.data({"topResult": {"url": "http://127.0.0.1:9/"}})
    ) as web:
        add(engine, "search", {**example(web), "policy": {}})
        result = finish(engine, engine.run("search", prompt="", params={"query": "x"}))
    assert result["success"] is False
    assert result["message"].startswith("block 3 (webScraping): ")
    assert '"private": true' in result["message"]
    assert [one["success"] for one in result["data"]["results"]] == [True, True, False]


@dataclass(slots=True)
class Ledger:
    """A server that does a thing once for each key, as real ones do, and holds its answer to the
    fourth until it is let go.
    """

    done: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    fourth: threading.Event = field(default_factory=threading.Event)
    go: threading.Event = field(default_factory=threading.Event)

    def answer(self, seen: Seen) -> Reply:
        self.asked.append(seen.path)
        self.done.setdefault(seen.headers["idempotency-key"], seen.path)
        if seen.path == "/4" and not self.go.is_set():
            self.fourth.set()
            self.go.wait(60)
        return webserver.data({"done": seen.path})


@contextmanager
def killed_at_the_fourth(
    engine: Engine, method: str, kind: str
) -> Iterator[tuple[ThreadId, Ledger]]:
    """A flow of six requests whose worker was killed while the fourth was under way, and
    performed.
    """
    ledger = Ledger()
    with webserver.serving(ledger.answer) as web:
        add(engine, "six", block_flow(web, method) if kind == "block" else task_flow(web, method))
        thread = engine.run("six", prompt="")
        assert ledger.fourth.wait(60)
        end_workers(engine.store.root)
        ledger.go.set()
        yield thread, ledger


def block_flow(web: WebServer, method: str) -> dict[str, object]:
    call = {"method": method, "url": f"{web.url}/${{number}}"}
    loop = {
        "list": [1, 2, 3, 4, 5, 6],
        "itemVariable": "number",
        "steps": [{"type": "apiCall", "config": call}],
    }
    policy = {"http": {"hosts": [web.host], "private": True}}
    return {
        "name": "six",
        "description": "Six.",
        "steps": [{"type": "forEach", "config": loop}],
        "policy": policy,
    }


def task_flow(web: WebServer, method: str) -> dict[str, object]:
    script = (
        "async def execute(api, params):\n"
        "    for number in range(1, 7):\n"
        f"        answer = await api.http('{method}', '{web.url}/' + str(number))\n"
        "        if answer.error:\n"
        "            raise ValueError(answer.error)\n"
    )
    policy = {"http": {"hosts": [web.host], "private": True}}
    return {
        "name": "six",
        "description": "Six.",
        "script": script,
        "parameters": [],
        "policy": policy,
    }


@pytest.mark.parametrize("kind", ["block", "task"])
def test_a_killed_flow_goes_on_and_nothing_is_done_twice(engine: Engine, kind: str) -> None:
    """Three effects are done, the fourth is under way when the worker is killed; resumed, it is
    sent again under the same key.
    """
    with killed_at_the_fourth(engine, "PUT", kind) as (thread, ledger):
        assert engine.thread(thread).summary.status == "interrupted"
        engine.resume(thread)
        assert finish(engine, thread)["success"] is True
        assert ledger.asked == ["/1", "/2", "/3", "/4", "/4", "/5", "/6"]
        assert list(ledger.done.values()) == ["/1", "/2", "/3", "/4", "/5", "/6"]
        assert engine.verify(thread).ok


def test_a_request_of_which_nobody_knows_is_a_persons_to_settle(engine: Engine) -> None:
    """An interrupted POST is not repeated by itself: the thread is unknown until a person decides;
    skipped, the flow gets an error.
    """
    with killed_at_the_fourth(engine, "POST", "block") as (thread, ledger):
        assert engine.thread(thread).summary.status == "unknown"
        with pytest.raises(RefusedError, match="is unknown"):
            engine.resume(thread)
        engine.resume(thread, skip=True)
        result = settle(engine, thread)
        assert result["status"] == "completed"
        assert ledger.asked == ["/1", "/2", "/3", "/4"]
        assert result["message"].startswith("block 1.1 (apiCall): ")
