"""Match of pairs with the forms of a page."""

from __future__ import annotations

from typing import Any

import pytest
from uncaged_browser.goal.forms import PageForm, read_forms
from uncaged_browser.goal.matching import chosen_form, entries_for, sending_button
from uncaged_browser.goal.pairs import BeyondForms, read_pairs

SIZES = [{"label": "Small", "names": [{"css": "#s"}]}, {"label": "Large", "names": [{"css": "#l"}]}]
COLOURS = [{"label": "Red"}, {"label": "Dark blue"}, {"label": "Gold", "fixed": True}]


def field(label: str, kind: str = "text", **more: Any) -> dict[str, Any]:
    return {"labels": [label], "kind": kind, "names": [{"label": label}], **more}


def forms(*listed: list[dict[str, Any]]) -> list[PageForm]:
    common = {"name": "", "method": "post", "action": "https://shop.test/"}
    button = {"label": "Send", "action": "https://shop.test/"}
    return read_forms(
        {
            "forms": [
                {"number": number, **common, "fields": fields, "buttons": [button]}
                for number, fields in enumerate(listed)
            ]
        }
    )


def entered(prompt: str, *fields: dict[str, Any]) -> list[dict[str, Any]]:
    [form] = forms(list(fields))
    entries = entries_for(form, read_pairs(prompt))
    return [{key: one.body[key] for key in one.body if key != "target"} for one in entries]


@pytest.mark.parametrize(
    ("kind", "more", "value", "body"),
    [
        ("text", {}, "a b", {"do": "fill", "text": "a b"}),
        ("number", {}, "-1.5", {"do": "fill", "text": "-1.5"}),
        ("date", {}, "24.12.2026", {"do": "fill", "text": "2026-12-24"}),
        ("date", {}, "December 24, 2026", {"do": "fill", "text": "2026-12-24"}),
        ("time", {}, "9:05", {"do": "fill", "text": "09:05"}),
        ("datetime-local", {}, "2026-12-24 14:30", {"do": "fill", "text": "2026-12-24T14:30"}),
        ("checkbox", {}, "Yes", {"do": "check", "checked": True}),
        ("checkbox", {}, "off", {"do": "check", "checked": False}),
        ("select", {"options": COLOURS}, "dark-blue", {"do": "select", "options": ["Dark blue"]}),
        (
            "select",
            {"options": COLOURS, "multiple": True},
            "red, dark blue",
            {"do": "select", "options": ["Red", "Dark blue"]},
        ),
        ("radio", {"options": SIZES}, "LARGE", {"do": "check"}),
        ("password", {}, "secret:SHOP", {"do": "fill", "text": "secret:SHOP"}),
    ],
)
def test_a_value_is_entered_in_the_way_of_its_field(
    kind: str, more: dict[str, Any], value: str, body: dict[str, Any]
) -> None:
    """Dates become what the field takes; an option is found by its text."""
    assert entered(f"Field: {value}", field("Field", kind, **more)) == [body]


@pytest.mark.parametrize(
    ("kind", "more", "value", "message"),
    [
        ("number", {}, "many", "takes a number"),
        ("date", {}, "03/04/2026", "takes a date such as"),
        ("date", {}, "2026-02-30", "takes a date such as"),
        ("checkbox", {}, "perhaps", "takes yes or no"),
        ("select", {"options": COLOURS}, "green", "takes one of: Red, Dark blue, not 'green'"),
        ("select", {"options": COLOURS}, "gold", "takes one of: Red, Dark blue, not"),
        ("radio", {"options": [*SIZES, *SIZES]}, "small", "takes one of"),
        ("text", {"maxLength": 3}, "long", "takes at most 3 characters"),
        ("text", {}, '"two\nlines"', "takes one line"),
        ("text", {"fixed": True}, "x", "cannot be changed"),
        ("file", {}, "/etc/passwd", "is for a file"),
        ("password", {}, "hunter2", "not taken from a prompt.*secret:NAME"),
    ],
)
def test_a_value_that_a_field_does_not_take_is_refused(
    kind: str, more: dict[str, Any], value: str, message: str
) -> None:
    """The message names the field and what it takes."""
    with pytest.raises(BeyondForms, match=f"'Field'.*{message}"):
        entered(f"Field: {value}", field("Field", kind, **more))


def test_the_secret_of_a_refused_password_is_not_repeated() -> None:
    """A message reaches journals and logs."""
    with pytest.raises(BeyondForms) as caught:
        entered("Field: hunter2", field("Field", "password"))
    assert "hunter2" not in str(caught.value)


def test_the_form_is_the_one_that_has_all_labels() -> None:
    """None, several, and a pair without a field are refused with the labels."""
    pairs = read_pairs("name: Ada, mail: a@b.test")
    search, contact = [field("Name")], [field("Name"), field("Mail")]
    assert chosen_form(forms(search, contact), pairs).number == 1
    with pytest.raises(BeyondForms, match="the page has no form"):
        chosen_form([], pairs)
    with pytest.raises(BeyondForms, match=r"2 forms of the page have these fields"):
        chosen_form(forms(contact, search, contact), pairs)
    with pytest.raises(BeyondForms, match="field for 'mail'; the nearest one has 'Name'"):
        chosen_form(forms(search, [field("Other")]), pairs)


@pytest.mark.parametrize(
    ("prompt", "fields", "message"),
    [
        ("a: 1", [field("A"), field("A")], "the form has 2 fields 'a'"),
        ("a: 1", [field("A"), field("B", required=True)], "needs a value for 'B', too"),
        ("a: 1\nb: 2", [{**field("A"), "labels": ["A", "B"]}], "for the same field"),
        ("a: 1, b: 2\nc: 3", [field("A"), field("B"), field("C")], "of 'a' has another pair, 'b'"),
    ],
)
def test_a_form_that_is_not_clear_is_not_filled_in(
    prompt: str, fields: list[dict[str, Any]], message: str
) -> None:
    """Equal labels, a required field without a value, and a pair inside a value are named."""
    with pytest.raises(BeyondForms, match=message):
        entered(prompt, *fields)


def test_a_form_with_two_buttons_is_not_sent() -> None:
    """Which of them was meant is not known."""
    [form] = forms([field("A")])
    assert sending_button(form).label == "Send"
    document = {"label": "Delete", "action": "https://shop.test/"}
    [two] = read_forms(
        {
            "forms": [
                {
                    "number": 0, "name": "", "method": "post", "action": "", "fields": [],
                    "buttons": [{**document, "label": "Save"}, document],
                }
            ]
        }
    )  # fmt: skip
    with pytest.raises(BeyondForms, match="several buttons that send it: 'Save', 'Delete'"):
        sending_button(two)
