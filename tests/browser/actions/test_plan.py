"""Plans of actions: values, questions, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from uncaged_browser.actions.keeping import recipe_of_action
from uncaged_browser.actions.page_action import actions_of_frame
from uncaged_browser.actions.plan import ActionPlan, plan_of
from uncaged_bundles.builders.recipes.recipe import parse_recipe
from uncaged_bundles.carried.web import fill
from uncaged_bundles.errors import RefusedError, UsageError

URL = "https://shop.test/cart"
NAMES = [{"css": "#it"}]
SIZES = [{"label": "Small", "names": NAMES}, {"label": "Large", "names": NAMES}]
COLOURS = [{"label": "Red"}, {"label": "Dark blue"}]


def field(label: str, kind: str = "text", **more: Any) -> dict[str, Any]:
    return {"labels": [label], "kind": kind, "names": NAMES, **more}


def answer(*buttons: Any, action: str = URL, **more: Any) -> dict[str, Any]:
    """An answer of the operation `actions` about one form."""
    form = {
        "number": 0,
        "name": "Order",
        "method": "post",
        "action": action,
        "fields": [
            field("First name", required=True),
            field("Count", "number"),
            field("Day", "date"),
            field("Gift", "checkbox"),
            field("Size", "radio", options=SIZES),
            field("Colour", "select", options=COLOURS),
            field("Password", "password"),
        ],
        "buttons": [
            {"label": one, "action": action, "names": NAMES} for one in buttons or ("Send",)
        ],
        **more,
    }
    offers: dict[str, list[Any]] = {"links": [], "buttons": [], "landmarks": []}
    [found] = actions_of_frame(0, URL, {"forms": [form]}, offers)
    return {"url": URL, "title": "Cart", "action": found.action.document(), "forms": [form]}


def page_answer(**schema: Any) -> dict[str, Any]:
    """An answer about an action that the page registers."""
    action = {"name": "page:add", "kind": "page", "label": "add", "parameters": schema}
    return {"url": URL, "title": "Cart", "action": action}


def element(kind: str, label: str, host: str = "") -> dict[str, Any]:
    action = {"name": f"{kind}:x", "kind": kind, "label": label, "host": host}
    return {"url": URL, "title": "Cart", "action": action, "names": NAMES}


VALUES = {
    "first_name": "Ada",
    "Count": "3",
    "Day": "24.12.2026",
    "Gift": "yes",
    "Size": "large",
    "Colour": "dark blue",
    "Password": "secret:SHOP",
}


def test_a_form_is_planned_and_asked_about() -> None:
    """Values are entered as their fields take them, by name or label, and the question names the
    button, the host and the values.
    """
    plan = plan_of(answer(), VALUES)
    done = [{key: one[key] for key in one if key != "target"} for one in plan.bodies]
    assert done == [
        {"do": "fill", "text": "Ada"},
        {"do": "fill", "text": "3"},
        {"do": "fill", "text": "2026-12-24"},
        {"do": "check", "checked": True},
        {"do": "check"},
        {"do": "select", "options": ["Dark blue"]},
        {"do": "fill", "text": "secret:SHOP"},
        {"do": "click"},
    ]
    assert plan.question.startswith("press 'Send' of form:order on shop.test with first_name=Ada,")


def test_a_flow_has_typed_parameters_and_the_literal_name_of_a_secret() -> None:
    """Each value is a parameter of its field's type; filled with other values, the steps enter
    these.
    """
    recipe: Any = recipe_of_action(plan_of(answer(), VALUES), "order-it", [])
    parse_recipe(recipe)
    kinds = {name: one["type"] for name, one in recipe["parameters"].items()}
    assert kinds == {
        "first_name": "string",
        "count": "number",
        "day": "string",
        "gift": "boolean",
        "size": "string",
        "colour": "string",
        "origin": "string",
    }
    assert recipe["parameters"]["colour"]["validation"] == {"allowedValues": ["Red", "Dark blue"]}
    assert recipe["parameters"]["count"]["default"] == 3
    assert recipe["secrets"] == {"SHOP": ["shop.test"]}
    params = {"first_name": "Bo", "count": 4, "day": "2027-01-02", "gift": False, "size": "Small"}
    params |= {"colour": "Red", "origin": "https://other.test"}
    steps = [fill("", one, params) for one in recipe["steps"]]
    assert steps[0]["url"] == "https://other.test/cart"
    assert [one.get("text") for one in steps[1:4]] == ["Bo", "4", "2027-01-02"]
    assert steps[4]["checked"] is False
    assert steps[5]["target"] == [{"role": "radio", "name": "Small"}, {"label": "Small"}]
    assert steps[6]["options"] == "Red"
    assert steps[7]["text"] == "secret:SHOP"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "needs a value for 'First name'"),
        ({"first_name": "Ada", "nick": "x"}, "there are 0 parameters 'nick'"),
        ({"first_name": "Ada", "First name": "Bo"}, "has two values"),
        ({"first_name": "Ada", "count": "many"}, "takes a number"),
        ({"first_name": "Ada", "day": "someday"}, "takes a date"),
        ({"first_name": "Ada", "colour": "green"}, "one of: Red, Dark blue"),
        ({"first_name": "Ada", "gift": "perhaps"}, "yes or no"),
        ({"first_name": "Ada", "password": "hunter2"}, "secret"),
    ],
)
def test_a_wrong_value_is_refused(values: dict[str, str], words: str) -> None:
    """The message says what the form takes; nothing is entered."""
    with pytest.raises(UsageError, match=words):
        plan_of(answer(), values)


def test_one_of_several_buttons_is_named() -> None:
    """Without a name nothing is pressed."""
    values = {"first_name": "Ada"}
    with pytest.raises(UsageError, match="--press: 'Send', 'Delete'"):
        plan_of(answer("Send", "Delete"), values)
    assert "press 'Delete'" in plan_of(answer("Send", "Delete"), values, press="delete").question
    with pytest.raises(UsageError, match="0 buttons 'Buy'"):
        plan_of(answer("Send"), values, press="Buy")


def test_fields_outside_of_a_form_are_filled_in_without_a_button() -> None:
    """Several buttons beside loose fields: none is guessed, and no required field is asked for."""
    plan = plan_of(answer("Add", "Clear", loose=True), {"count": "2"})
    assert plan.last is None and plan.question == ""
    assert [one["do"] for one in plan.bodies] == ["fill"]
    assert plan_of(answer("Add", loose=True), {"count": "2"}).question


def test_another_host_is_refused_until_it_is_allowed() -> None:
    """A form that sends elsewhere, and a link that leads elsewhere."""
    foreign = answer(action="https://evil.test/steal")
    values = {"first_name": "Ada"}
    with pytest.raises(RefusedError, match=r"sends to evil\.test.*--allow-host evil\.test"):
        plan_of(foreign, values)
    assert "on evil.test" in plan_of(foreign, values, allowed=["evil.test"]).question
    with pytest.raises(RefusedError, match=r"leads to evil\.test"):
        plan_of(element("link", "Cheap", "evil.test"), {}, allowed=["shop.test"])
    with pytest.raises(RefusedError, match="mailto:, which is no page"):
        plan_of(element("link", "Write to us", "mailto:"), {}, allowed=["*"])


@pytest.mark.parametrize(
    ("kind", "label", "asks"),
    [
        ("button", "Menu", True),
        ("link", "About us", False),
        ("link", "Delete my account", True),
        ("landmark", "Main", False),
    ],
)
def test_what_presses_is_asked_about(kind: str, label: str, asks: bool) -> None:
    """Buttons always, links whose name promises to send or delete, landmarks never."""
    assert bool(plan_of(element(kind, label), {}).question) is asks


def test_values_of_a_page_s_action_have_its_types() -> None:
    """Text becomes numbers and truth values; required ones, choices and unknown ones are
    checked.
    """
    properties = {"id": {"type": "integer"}, "wrap": {"type": "boolean"}, "size": {"enum": ["S"]}}
    offered = page_answer(properties=properties, required=["id"])
    plan = plan_of(offered, {"id": "5", "wrap": "no"})
    assert plan.last is not None and plan.last["arguments"] == {"id": 5, "wrap": False}
    assert plan.question == f"let {URL} perform its action 'add' with id=5, wrap=no"
    for values in ({}, {"id": "x"}, {"id": "1", "size": "L"}, {"id": "1", "more": "x"}):
        with pytest.raises(UsageError):
            plan_of(offered, values)


def test_a_secret_is_not_given_to_a_page_s_action() -> None:
    """The page's own scripts would read it: it is refused, and not left out of a flow."""
    offered = page_answer(properties={"id": {"type": "string"}})
    with pytest.raises(UsageError, match="secret:SHOP is not given"):
        plan_of(offered, {"id": "secret:SHOP"})
    assert plan_of(offered, {"id": "secret: SHOP"}).values


def test_a_flow_of_a_page_s_action_calls_it_with_typed_arguments() -> None:
    """The arguments are placeholders that become data."""
    offered = page_answer(properties={"id": {"type": "integer"}}, required=["id"])
    plan: ActionPlan = plan_of(offered, {"id": "5"})
    recipe: Any = recipe_of_action(plan, "add-it", [])
    parse_recipe(recipe)
    last = fill("", recipe["steps"][-1], {"id": 7})
    assert last["arguments"] == {"id": 7} and last["name"] == "add"
