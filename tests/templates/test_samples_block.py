"""The block flows among the shipped samples run for real, against a server of each API's shape and
a model server.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from testbed import modelserver, webserver
from testbed.modelserver import says
from testbed.steering import finish
from testbed.webserver import Reply, Seen
from uncaged_bundles.builders.blocks.block_flow import BlockFlow
from uncaged_bundles.builders.recipes.recipe import read_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow
from uncaged_engine.api import Engine
from uncaged_templates.recipes import SAMPLES
from uncaged_tools.flows import tools

BLOCKS = ("book-search", "page-summary", "repository-facts")
REPOSITORY = {
    "full_name": "python/cpython",
    "description": "The Python programming language",
    "stargazers_count": 60000,
    "forks_count": 29000,
    "open_issues_count": 9000,
    "language": "Python",
    "pushed_at": "2026-01-02T03:04:05Z",
    "html_url": "https://github.com/python/cpython",
}
BOOKS = {
    "numFound": 2,
    "docs": [
        {
            "title": "To the Lighthouse",
            "author_name": ["Virginia Woolf"],
            "first_publish_year": 1927,
        },
        {"title": "Lighthouses"},
    ],
}


def read(name: str) -> BlockFlow:
    flow = read_recipe((SAMPLES / f"{name}.recipe.json").read_bytes(), name)
    assert isinstance(flow, BlockFlow)
    return flow


def run(
    engine: Engine, name: str, answer: Callable[[Seen], Reply], **params: object
) -> tuple[Any, list[str]]:
    """The result of the sample with its API on loopback, which is the person's to configure, and
    the paths that it asked for.
    """
    with webserver.serving(answer) as web:
        flow = read(name)
        policy = {**flow.policy, **{kind: {"private": True} for kind in ("http", "fetch")}}
        engine.add(name, build_flow(replace(flow, policy=policy)).source, accept=lambda _: True)
        base = {"base": web.url} if "base" in flow.parameters["properties"] else {}  # type: ignore[operator]
        given = {
            key: str(value).replace("SERVER", web.url) if isinstance(value, str) else value
            for key, value in params.items()
        }
        thread = engine.run(name, prompt="", params={**base, **given})
        result = finish(engine, thread)
        assert engine.verify(thread).ok
        return result, [seen.path for seen in web.seen]


@pytest.mark.parametrize("name", BLOCKS)
def test_a_sample_is_whole(name: str, engine: Engine) -> None:
    """No key does nothing, each has an example, and a model is offered what it needs and no
    more.
    """
    flow = read(name)
    built = build_flow(flow)
    assert (built.notes, built.active) == ((), True)
    engine.add(name, built.source, accept=lambda _: True)
    [tool] = tools(engine)
    [example] = flow.examples
    assert isinstance(example, dict)
    assert set(tool.schema["required"]) <= set(example["params"]) <= set(tool.schema["properties"])
    assert "base" not in tool.schema["properties"]
    assert all(part.get("description") for part in tool.schema["properties"].values())


@pytest.mark.slow
def test_repository_facts(engine: Engine) -> None:
    """Owner and name become parts of the path; the facts are the direct output; a repository that
    is not there is an error.
    """

    def answer(seen: Seen) -> Reply:
        return (
            webserver.data(REPOSITORY)
            if seen.path == "/repos/python/cpython"
            else webserver.data({"message": "Not Found"}, status=404)
        )

    result, paths = run(engine, "repository-facts", answer, repository=" python/cpython/ ")
    assert paths == ["/repos/python/cpython"]
    assert result["data"]["directOutput"] == (
        "python/cpython: The Python programming language\n60000 stars, 29000 forks, 9000 open issues and requests, mostly Python\n"
        "last changed 2026-01-02, https://github.com/python/cpython"
    )
    result, _ = run(engine, "repository-facts", answer, repository="a/b")
    assert result["message"].startswith("block 3 (apiCall): HTTP 404: ")
    result, paths = run(engine, "repository-facts", answer, repository="../user")
    assert (result["success"], paths) == (False, [])


@pytest.mark.slow
def test_book_search(engine: Engine) -> None:
    """A line for each book, whatever of it is known; without any book, that is said."""
    result, paths = run(
        engine, "book-search", lambda _: webserver.data(BOOKS), query="to the & lighthouse", limit=2
    )
    assert paths == [
        "/search.json?q=to%20the%20%26%20lighthouse&limit=2&fields=title,author_name,first_publish_year,key"
    ]
    lines = [
        "1. To the Lighthouse, Virginia Woolf (1927)",
        "2. Lighthouses, author unknown (year unknown)",
    ]
    assert result["data"]["directOutput"].splitlines() == lines
    result, _ = run(engine, "book-search", lambda _: webserver.data({"docs": []}), query="xyz")
    assert result["data"]["directOutput"] == "No book was found for: xyz"


@pytest.mark.slow
def test_page_summary(engine: Engine) -> None:
    """The instruction has the page as Markdown, and the model's answer is the direct output."""
    page = "<html><body><h1>Lighthouses</h1><p>They shine.</p></body></html>"
    with modelserver.serving([says("• They shine.")]) as model:
        settings = {
            "models": {"m": {"use": "openai", "baseUrl": model.base_url("openai"), "model": "tiny"}}
        }
        engine.store.config_path.write_text(json.dumps(settings))
        result, _ = run(
            engine,
            "page-summary",
            lambda _: webserver.text(page, "text/html"),
            url="SERVER/lighthouses",
            points=1,
        )
        [asked] = model.asked
    assert result["data"]["directOutput"] == "• They shine."
    assert "in 1 bullet points" in asked["messages"][-1]["content"]
    assert "# Lighthouses" in asked["messages"][-1]["content"]
