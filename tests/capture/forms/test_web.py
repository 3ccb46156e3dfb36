"""Capture of web flows from traces: which step, which values, which types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from uncaged_browser.recording.recording import RecordingError
from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_capture.forms.web import captured_web, parameters_from, recording_of
from uncaged_engine.services.threads import StepTrace

URL = "http://shop.test/"
PROMPT = "Order 3 red chairs for Ada at 9.50 EUR, remark 007"


def fill(label: str, text: str) -> dict[str, object]:
    return {"do": "fill", "target": [{"label": label}], "text": text}


def trace(*steps: Mapping[str, object], seq: int = 1, secrets: tuple[str, ...] = ()) -> StepTrace:
    recording = {
        "format": 1,
        "name": "x",
        "url": URL,
        "steps": [{"do": "navigate", "url": URL}, *steps],
    }
    calls: tuple[Mapping[str, Any], ...] = tuple(
        {"arguments": {"text": text}, "failed": False} for text in secrets
    )
    return StepTrace(
        seq=seq,
        role="navigator",
        agent="m",
        calls=calls,
        left_out=0,
        notes={"recording": recording},
    )


def test_values_of_the_prompt_become_parameters_typed_by_their_form() -> None:
    """A typed value that recurs as a whole word is a parameter; another one stays in the flow."""
    found = trace(
        fill("Number", "3"),
        fill("Goods", "red chairs"),
        fill("Price", "9.50"),
        fill("Limit", "9.5"),
        fill("Remark", "007"),
        fill("Who", "A"),
        fill("Country", "Norway"),
    )
    recording = recording_of([found], "order", "01T")
    parameters = parameters_from(recording, PROMPT)
    assert parameters == {"number": "3", "goods": "red chairs", "price": "9.50", "remark": "007"}
    recipe = captured_web(recording, parameters, PROMPT).recipe
    assert {name: one["default"] for name, one in recipe["parameters"].items()} == {
        "number": 3,
        "goods": "red chairs",
        "price": "9.50",
        "remark": "007",
        "origin": "http://shop.test",
    }
    assert recipe["parameters"]["number"]["type"] == "integer"
    assert recipe["source"] == {"type": "goal", "originUrl": URL}
    assert PROMPT in recipe["description"]
    assert [one.get("text") for one in recipe["steps"][-2:]] == ["A", "Norway"]


def test_a_secret_has_the_name_that_the_agent_used() -> None:
    """The recorder knows the field alone; the trace knows the secret."""
    steps = (fill("Mail", "a@b.test"), fill("Password", "secret:PASSWORD"))
    recording = recording_of([trace(*steps, secrets=("a@b.test", "secret:SHOP"))], "login", "01T")
    assert parameters_from(recording, "") == {"password": "secret:SHOP"}


def test_the_step_is_the_only_one_with_a_browser_or_named() -> None:
    """No browser, several steps, and a task of one action are refused with the next command."""
    steps = (fill("Goods", "chair"), fill("Number", "3"))
    one, other = trace(*steps, seq=1), trace(*steps, seq=4)
    with pytest.raises(UsageError, match="steps 1, 4 of thread 01T used a browser"):
        recording_of([one, other], "order", "01T")
    assert recording_of([one, other], "order", "01T", 4).name == "order"
    with pytest.raises(NotFoundError, match="thread show 01T --trace"):
        recording_of([one], "order", "01T", 2)
    with pytest.raises(RecordingError, match="1 meaningful action"):
        recording_of([trace(fill("Goods", "chair"))], "order", "01T")


@pytest.mark.parametrize(
    ("role", "name", "prompt", "found"),
    [
        ("link", "Raven", "Open the guide Raven and print it", {"text": "Raven"}),
        ("link", "Edit Blue Lamp", "change the price of Blue Lamp to 3", {"text": "Blue Lamp"}),
        ("radio", "Medium", "Book a medium box", {"text": "medium"}),
        ("button", "Follow Ann", "follow Ann on this page", {"text": "Ann"}),
        ("button", "Order", "Press Order on this page", {}),
        ("button", "Place order", "Place an order for me", {}),
        ("link", "Terms of use", "Read the terms. Terms change often.", {}),
        ("link", "Raven", "Open the ravens", {}),
    ],
)
def test_what_the_prompt_says_of_an_element_is_a_parameter(
    role: str, name: str, prompt: str, found: Mapping[str, str]
) -> None:
    """An element that was chosen for a value of the prompt is found by that value alone; words for
    actions stay in the flow.
    """
    target = [{"role": role, "name": name}, {"css": "#r1"}]
    recording = recording_of([trace({"do": "click", "target": target}, fill("A", "b"))], "x", "01T")
    parameters = parameters_from(recording, prompt)
    assert parameters == found
    step = captured_web(recording, parameters, prompt).recipe["steps"][1]
    assert len(step["target"]) == (1 if found else 2)
    for value in found.values():
        assert value not in str(step["target"]), "another value finds another element"


def test_a_value_that_was_typed_and_chosen_is_one_parameter() -> None:
    """Its name is that of the field."""
    link = {"do": "click", "target": [{"role": "link", "name": "The Raven"}]}
    recording = recording_of([trace(fill("Search", "The Raven"), link)], "x", "01T")
    parameters = parameters_from(recording, "Look for The Raven, and open it")
    assert parameters == {"search": "The Raven"}
    assert captured_web(recording, parameters, "").recipe["parameters"]["search"]


def test_the_prompt_becomes_a_sentence_pattern() -> None:
    """A value is a capture there, in capitals or not; a prompt with a secret has no pattern."""
    steps = (fill("Goods", "red chairs"), fill("Number", "3"))
    recording = recording_of([trace(*steps)], "order", "01T")
    prompt = "Order 3 Red chairs at the shop."
    recipe = captured_web(recording, parameters_from(recording, prompt), prompt).recipe
    assert recipe["grammarPatterns"] == ["Order $(number:number) $(goods:wildcard) at the shop"]
    assert recipe["examples"] == [{"sentence": "Order 3 Red chairs at the shop"}]
    with_secret = f"{prompt} password: hunter2-7"
    found = captured_web(recording, parameters_from(recording, with_secret), with_secret).recipe
    assert found["grammarPatterns"] == []
    assert "hunter2" not in str(found)
