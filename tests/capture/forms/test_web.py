"""Capture of web flows from traces: which step, which values, which types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from uncaged_browser.recording.recording import RecordingError
from uncaged_bundles.errors import NotFoundError, UsageError
from uncaged_capture.forms.web import captured_recipe, parameters_from, recording_of
from uncaged_capture.traces import StepTrace

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
    recipe = captured_recipe(recording, parameters, PROMPT)
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
