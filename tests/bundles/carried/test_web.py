"""The driver of web flows inside a bundle: parameters, drift, errors of a step, and scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from uncaged_bundles.builders.recipes.recipe import parse_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow
from uncaged_engine.effect_kinds import KNOWN

NAMES = ("word", "agree", "number")


class EffectError(Exception):
    """The exception that the sandbox's child raises inside a bundle."""

    def __init__(self, error: Mapping[str, object]) -> None:
        super().__init__(str(error.get("message")))
        self.error = error


def drive(body: Any, *answers: Any, **params: Any) -> tuple[list[Any], Any]:
    """Run steps or a script over these answers; returns the operations and the result."""
    recipe = {
        "kind": "web",
        "name": "demo",
        "description": "d",
        "parameters": {name: {"type": "string"} for name in NAMES},
        ("script" if isinstance(body, str) else "steps"): body,
    }
    namespace: dict[str, Any] = {}
    source = build_flow(parse_recipe(recipe), KNOWN).source
    exec(compile(source, "bundle.py", "exec"), namespace)  # noqa: S102 - the bundle is the subject of the test
    generator = namespace["run"]({"prompt": "", "params": params, "steps": []}, {})
    operations: list[Any] = []
    waiting = list(answers)
    try:
        operations.append(next(generator)["browser"])
        while True:
            answer = waiting.pop(0)
            effect = (
                generator.throw(answer) if isinstance(answer, Exception) else generator.send(answer)
            )
            operations.append(effect["browser"])
    except StopIteration as stop:
        assert waiting == []
        return operations, stop.value


def test_parameters_replace_their_placeholders() -> None:
    """A placeholder becomes its text; a doubled dollar is a dollar; data keeps its type where a
    step has data; a parameter's text is never read as a placeholder.
    """
    step = {
        "do": "fill",
        "target": [{"role": "textbox", "name": "For ${word}"}],
        "text": "${word} $${word} ${number}",
        "checked": "${agree}",
        "expect": {"heading": "* ${word}"},
    }
    [operation], _ = drive([step], {}, word="${number}*", number=3, agree=False)
    assert operation == {
        "do": "fill",
        "target": [{"role": "textbox", "name": "For ${number}*"}],
        "text": "${number}* ${word} 3",
        "checked": False,
        "expect": {"heading": "* ${number}\\*"},
    }


def test_a_result_has_the_kept_answers_and_the_later_alternatives() -> None:
    """The result has what steps keep, the last address, and where another than the first
    alternative matched.
    """
    steps = [{"do": "click", "target": "x"}, {"do": "text", "keep": "price"}]
    _, result = drive(steps, {"url": "u", "alternative": 2}, {"url": "v", "text": "3 €"})
    assert result["success"]
    assert result["message"] == "3 €"
    assert result["data"] == {
        "url": "v",
        "steps": 2,
        "kept": {"price": "3 €"},
        "alternatives": [{"step": 1, "alternative": 2}],
    }


def test_drift_ends_a_flow_without_success() -> None:
    """After a step whose page differs no further step is performed; the result has both sides."""
    drift = [{"what": "url", "expected": "/cart", "found": "http://a.test/login"}]
    steps = [{"do": "click", "target": [{"text": "Buy"}]}, {"do": "reload"}]
    operations, result = drive(steps, {"url": "u", "drift": drift})
    assert len(operations) == 1
    assert not result["success"]
    assert result["data"]["drift"] == drift
    assert "step 1 of 2 (click Buy): the page differs: url: expected '/cart'" in result["message"]


@pytest.mark.parametrize("kind", ["not-found", "ambiguous", "timeout", "blocked", "crashed"])
def test_a_failed_step_ends_a_flow_with_its_kind(kind: str) -> None:
    """A failed step ends the flow; its kind and the whole error are in the data."""
    error = {"kind": kind, "message": "no"}
    _, result = drive([{"do": "reload"}], EffectError(error))
    assert (result["success"], result["data"]["kind"]) == (False, kind)
    assert result["data"]["error"] == error


def test_a_script_gets_answers_and_errors() -> None:
    """A script's method returns the answer; a failed step raises an error with its kind, and drift
    is one of the kinds.
    """
    script = """
async def execute(browser, params):
    found = []
    for target in ("#a", {"role": "button"}):
        try:
            await browser.click(target, timeout_s=1)
        except StepError as error:
            found.append([error.kind, error.candidates])
    print("tried")
    return {"success": True, "data": [*found, await browser.text("h1")]}
"""
    ambiguous = EffectError({"kind": "ambiguous", "message": "two", "candidates": ["<a>", "<b>"]})
    drift = [{"what": "title", "expected": "A", "found": "B"}]
    operations, result = drive(script, ambiguous, {"drift": drift}, {"text": "Shop"})
    assert operations == [
        {"do": "click", "target": {"css": "#a"}, "timeout_s": 1},
        {"do": "click", "target": {"role": "button"}, "timeout_s": 1},
        {"do": "text", "target": {"css": "h1"}},
    ]
    assert result["data"] == [["ambiguous", ["<a>", "<b>"]], ["drift", []], "Shop"]
    assert result["log"] == ["tried"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return None", {"success": True, "message": "Script completed", "data": None}),
        ("return 3", {"success": True, "message": "3", "data": 3}),
        ('return {"success": False, "error": "no"}', {"success": False, "message": "no"}),
        ("return {1}", {"success": False}),
        ("1 / 0", {"success": False, "message": "ZeroDivisionError: division by zero"}),
        ('await browser.click("#a")', {"success": False, "message": "demo: step 1: gone"}),
    ],
)
def test_a_scripts_end_becomes_a_result(body: str, expected: dict[str, Any]) -> None:
    """A returned value is wrapped; an exception and a failed step are results without success."""
    script = f"async def execute(browser, params):\n    await browser.reload()\n    {body}\n"
    if "click" in body:
        script = script.replace("    await browser.reload()\n", "")
    answer: Any = EffectError({"kind": "not-found", "message": "gone"}) if "click" in body else {}
    _, result = drive(script, answer)
    assert expected.items() <= result.items()
