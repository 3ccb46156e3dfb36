"""Recordings: their JSON, the checks of foreign files, and the recipe of a recording."""

from __future__ import annotations

import json
from typing import Any

import pytest
from uncaged_browser.operations import read_operation
from uncaged_browser.recording.recording import Recording, RecordingError, read_recording

URL = "https://shop.test/start"
STEPS: list[dict[str, Any]] = [
    {"do": "navigate", "url": URL},
    {
        "do": "fill",
        "target": [{"label": "Search"}, {"css": "input[value='blue lamp']"}, {"css": "#q"}],
        "text": "blue lamp",
    },
    {
        "do": "press",
        "key": "Enter",
        "expect": {"url": "https://shop.test/find?q=blue+lamp", "heading": "Found: blue lamp"},
    },
    {"do": "click", "target": [{"role": "link", "name": "Add blue lamp to cart"}]},
    {"do": "fill", "target": [{"label": "Password"}], "text": "secret:PASSWORD"},
    {"do": "fill", "target": [{"label": "Note"}], "text": "costs ${price}"},
]


def recorded(*steps: dict[str, Any], **changes: Any) -> Recording:
    operations = tuple(read_operation(step) for step in steps or STEPS)
    return Recording(**{"name": "buy", "url": URL, "steps": operations, **changes})


def test_a_recording_is_read_back_as_it_was_written() -> None:
    """A recording's text holds each step with all alternatives, and reads back equal."""
    recording = recorded(
        left_out=("a canvas",), hosts=("pay.test",), parameters={"item": "blue lamp"}
    )
    again = read_recording(recording.text())
    assert again == recording
    assert json.loads(again.text())["steps"] == STEPS


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda text: text[: len(text) // 2], "torn"),
        (lambda text: text.replace('"format": 1', '"format": 2'), "newer"),
        (lambda text: text + " " * (5 << 20), "too-large"),
        (lambda text: text.replace(URL, "https://evil.test/", 1), "foreign-hosts"),
        (lambda text: text.replace("navigate", "teleport"), "malformed"),
        (lambda text: text.replace('"steps"', '"stops"'), "malformed"),
        (lambda _: "[" * 100_000, "malformed"),
        (lambda text: text.replace(URL, "javascript:alert(1)"), "malformed"),
    ],
)
def test_a_damaged_or_strange_file_is_refused_with_its_own_fault(change: Any, fault: str) -> None:
    """A file that is torn, newer, too large, about other hosts or malformed gives its own error."""
    with pytest.raises(RecordingError) as caught:
        read_recording(change(recorded().text()))
    assert caught.value.fault == fault


def test_a_recording_may_name_the_other_hosts_that_it_goes_to() -> None:
    """A step at another host is read if the recording names that host."""
    steps = (*STEPS, {"do": "navigate", "url": "https://pay.test/"})
    assert read_recording(recorded(*steps, hosts=("pay.test",)).text()).hosts == ("pay.test",)
    with pytest.raises(RecordingError, match=r"goes to pay\.test"):
        read_recording(recorded(*steps).text())


def test_a_recipe_has_the_typed_values_as_parameters() -> None:
    """Typed values become parameters wherever they recur, the origin is one, and a secret is a
    name that only the recorded host gets.
    """
    recipe: Any = recorded().to_recipe("buy")
    assert {name: one["default"] for name, one in recipe["parameters"].items()} == {
        "search": "blue lamp",
        "password": "secret:PASSWORD",
        "note": "costs ${price}",
        "origin": "https://shop.test",
    }
    steps = recipe["steps"]
    assert steps[0]["url"] == "${origin}/start"
    assert steps[1]["text"] == "${search}"
    assert steps[1]["target"] == [{"label": "Search"}, {"css": "#q"}]
    assert steps[2]["expect"] == {"url": "/find?q=*", "heading": "Found: ${search}"}
    assert steps[3]["target"] == [{"role": "link", "name": "Add ${search} to cart"}]
    assert recipe["steps"][3] == {
        "do": "click",
        "target": [{"role": "link", "name": "Add ${search} to cart"}],
    }
    assert recipe["secrets"] == {"PASSWORD": ["shop.test"]}
    assert recipe["scope"] == {"type": "site", "domains": ["shop.test"], "private": True}


def test_parameters_can_be_named_or_left_out() -> None:
    """Parameters by a person's names replace the proposed ones; a dollar sign in a recorded text
    is kept as text.
    """
    recipe: Any = recorded().to_recipe("buy", {"item": "blue lamp"})
    assert set(recipe["parameters"]) == {"item", "origin"}
    kept = recorded(parameters={"item": "blue lamp"}).propose_parameters()
    assert set(kept) == {"item", "password", "note"}
    assert recipe["steps"][5]["text"] == "costs $${price}"
    for wrong in ({"item": "red"}, {"origin": "blue lamp"}, {"a b": "blue lamp"}, {"item": 3}):
        with pytest.raises(RecordingError):
            recorded().to_recipe("buy", wrong)


def test_fewer_than_two_actions_are_no_task() -> None:
    """Loading a page, moving the mouse and scrolling are no actions; two clicks are."""
    click = {"do": "click", "target": [{"text": "Go"}]}
    noise = [STEPS[0], {"do": "scroll"}, {"do": "hover", "target": [{"text": "Go"}]}]
    with pytest.raises(RecordingError) as caught:
        recorded(*noise, click).to_recipe("short")
    assert caught.value.fault == "too-short"
    recorded(*noise, click, click).to_recipe("long")


def test_no_alternative_keeps_the_recorded_value_of_a_parameter() -> None:
    """A target that names a parameter's value follows the parameter in each alternative; a selector
    with the value inside, or without it, is left out, and another case means a name that contains
    it.
    """
    target = [
        {"role": "link", "name": "Order blue lamp"},
        {"text": "Order Blue Lamp"},
        {"testId": "order-blue-lamp"},
        {"css": 'a[title="Blue Lamp"]'},
        {"xpath": "//li[3]/a"},
    ]
    recipe: Any = recorded(*STEPS[:3], {"do": "click", "target": target}).to_recipe("buy")
    assert recipe["steps"][3]["target"] == [
        {"role": "link", "name": "Order ${search}"},
        {"text": "Order ${search}", "exact": False},
    ]


def test_a_value_that_is_a_word_of_the_host_leaves_the_address_relative() -> None:
    """The expectation of an address holds at another origin whatever was typed."""
    search = {**STEPS[1], "text": "shop", "expect": {"url": "https://shop.test/find/shop"}}
    recipe: Any = recorded(STEPS[0], search, STEPS[3]).to_recipe("buy", {"item": "shop"})
    assert recipe["steps"][1]["expect"]["url"] == "/find/*"
