"""Bundles of web flows: their policy, the round trip, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from uncaged_bundles.builders.recipes.flows import ForeignFlow, WebFlow
from uncaged_bundles.builders.recipes.recipe import parse_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow, flow_of, read_script_file
from uncaged_bundles.errors import BundleError
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.effect_kinds import KNOWN

STEPS: list[dict[str, Any]] = [
    {"do": "navigate", "url": "${origin}/"},
    {"do": "fill", "target": [{"label": "Search"}], "text": "${words}", "submit": True},
]
RECIPE: dict[str, Any] = {
    "kind": "web",
    "name": "findTea",
    "description": "Find something in a shop.",
    "parameters": {
        "words": {"type": "string", "required": True, "description": "what"},
        "origin": {"type": "string", "required": False, "default": "https://shop.test"},
    },
    "scope": {"type": "site", "domains": ["shop.test"], "urlPatterns": ["https://shop.test/*"]},
    "secrets": {"PASSWORD": ["shop.test"]},
    "grammarPatterns": ["find $(words:wildcard) in the shop"],
    "source": {"type": "recording", "originUrl": "https://shop.test/"},
    "steps": STEPS,
}
SCRIPT = """async def execute(browser, params):
    await browser.navigate("https://shop.test/")
    try:
        await browser.click({"text": params.words})
    except StepError as error:
        return error.kind
    return await browser.text("h1")
"""


def recipe(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**RECIPE, **changes}.items() if value is not None}


@pytest.mark.parametrize("body", [{}, {"steps": None, "script": SCRIPT}])
def test_a_web_recipe_becomes_a_bundle_and_back(body: dict[str, Any]) -> None:
    """A web flow's bundle is valid, asks for its scope alone, and gives back the flow that builds
    the same bytes.
    """
    flow = parse_recipe(recipe(**body))
    assert isinstance(flow, WebFlow)
    built = build_flow(flow, KNOWN)
    bundle = read_bundle(built.source, KNOWN, check_schemas=True)
    assert bundle.descriptor.kind == "web"
    assert bundle.descriptor.raw["maxSeconds"] == 180
    assert bundle.descriptor.policy.limits == {
        "browser": {
            "hosts": ["shop.test", "*.shop.test"],
            "urlPatterns": ["https://shop.test/*"],
            "secrets": {"PASSWORD": ["shop.test"]},
        }
    }
    assert bundle.descriptor.raw["source"] == "recording, originUrl https://shop.test/"
    again = flow_of(bundle)
    assert isinstance(again, WebFlow)
    assert (again.steps, again.script) == (flow.steps, flow.script)
    assert build_flow(again, KNOWN).source == built.source


def test_a_flow_of_the_whole_web_names_no_hosts() -> None:
    """A global scope is any public host; a site without domains is refused."""
    flow = parse_recipe(recipe(scope={"type": "global"}, secrets=None))
    assert isinstance(flow, WebFlow)
    assert flow.policy == {}
    with pytest.raises(BundleError, match="needs domains"):
        parse_recipe(recipe(scope={"type": "site"}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": [{"do": "fill", "text": "${nothing}"}]}, r"steps\[0\]: there is no parameter"),
        ({"steps": [{"target": "x"}]}, r"steps\[0\]\.do: is missing"),
        ({"steps": []}, "has 0 steps"),
        ({"maxSeconds": 0}, r"maxSeconds: must be a positive number"),
        ({"script": SCRIPT}, "either 'steps' or a 'script'"),
        ({"scope": {"domains": ["shop.test/path"]}}, r"scope\.domains\[0\]"),
        ({"scope": {"domains": ["shop.test"], "port": 1}}, "unknown key 'port'"),
        ({"kind": "web", "policy": {"http": {}}}, "unknown key 'policy'"),
    ],
)
def test_a_wrong_web_recipe_is_refused(changes: dict[str, Any], message: str) -> None:
    """An error has the path of the wrong part."""
    with pytest.raises(BundleError, match=message):
        parse_recipe(recipe(**changes))


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (SCRIPT.replace("browser, params", "api, params"), r"takes exactly \(browser, params\)"),
        (SCRIPT.replace("browser.click", "browser.explode"), "the browser has no 'explode'"),
        (SCRIPT.replace("error.kind", "drive_browser"), "belongs to the driver"),
        ("import os\n" + SCRIPT, "import of 'os'"),
    ],
)
def test_a_web_script_follows_the_rules_of_scripts(script: str, message: str) -> None:
    """A script for a browser is checked as a task's is, with line and column."""
    flow = parse_recipe(recipe(steps=None, script=script))
    with pytest.raises(BundleError, match=message):
        build_flow(flow, KNOWN)


def test_a_script_file_for_a_browser_is_a_web_flow() -> None:
    """A file whose function takes a browser is scoped to the hosts that it loads literally."""
    flow = read_script_file("buy", ".py", SCRIPT)
    assert isinstance(flow, WebFlow)
    assert flow.policy == {"hosts": ["shop.test", "*.shop.test"]}
    assert flow.parameters["required"] == ["words"]
    computed = read_script_file("any", ".py", SCRIPT.replace('"https://shop.test/"', "params.site"))
    assert isinstance(computed, WebFlow)
    assert computed.policy == {}


def test_a_definition_in_javascript_is_kept() -> None:
    """A web flow in JavaScript is stored whole, with a note on what makes it run."""
    text = "async function execute(browser, params) { await browser.goBack(); }"
    flow = parse_recipe(recipe(steps=None, script=text, secrets=None))
    assert isinstance(flow, ForeignFlow)
    built = build_flow(flow)
    assert read_bundle(built.source).descriptor.raw["unsupported"] == "javascript"
    assert "edit find-tea --script FILE.py" in built.notes[-1]
