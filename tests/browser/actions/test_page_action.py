"""Names and parameters of the actions of a page."""

from __future__ import annotations

from typing import Any

import pytest
from uncaged_browser.actions.page_action import (
    FoundAction,
    actions_of_frame,
    named_actions,
    parameter_names,
)
from uncaged_browser.goal.forms import read_forms
from uncaged_bundles.shapes import ShapeError

URL = "https://shop.test/"


def field(label: str, kind: str = "text", **more: Any) -> dict[str, Any]:
    return {"labels": [label] if label else [], "kind": kind, **more}


def form(*fields: Any, name: str = "Order", action: str = URL, **more: Any) -> dict[str, Any]:
    button = {"label": "Go on", "action": action}
    return {
        "number": 0,
        "name": name,
        "method": "post",
        "action": action,
        "fields": list(fields),
        "buttons": [button],
        **more,
    }


def offered(*forms: Any, links: Any = (), buttons: Any = ()) -> list[FoundAction]:
    offers = {"links": list(links), "buttons": list(buttons), "landmarks": []}
    return named_actions(list(actions_of_frame(0, URL, {"forms": list(forms)}, offers)))


def names(*labels: str) -> list[str]:
    [read] = read_forms({"forms": [form(*map(field, labels))]})
    return parameter_names(read)


def test_a_parameter_has_the_name_of_its_label_in_ascii() -> None:
    """Accents go, equal names get a number, and a label in another script leaves the key of the
    page or the number of the field.
    """
    assert names("E-Mail", "Straße", "e mail") == ["e_mail", "strasse", "e_mail_2"]
    assert names("2nd line", "Имя", "") == ["field_2nd_line", "field_2", "field_3"]
    assert names("Origin", "${x}") == ["origin_2", "x"]
    [read] = read_forms({"forms": [form(field("Имя", key="first-name"))]})
    assert parameter_names(read) == ["first_name"]


def test_parameters_have_the_types_of_their_fields() -> None:
    """Numbers, dates, check boxes, options and secrets; a required field that is filled already,
    and one that cannot be changed, are not asked for.
    """
    colours = [{"label": "Red"}, {"label": "Blue"}, {"label": "Gone", "fixed": True}]
    [found] = offered(
        form(
            field("Name", required=True, maxLength=20),
            field("Count", "number"),
            field("Day", "date"),
            field("News", "checkbox"),
            field("Colour", "select", options=colours),
            field("Sizes", "select", options=colours, multiple=True),
            field("Password", "password"),
            field("Country", required=True, filled=True),
            field("Total", fixed=True),
        )
    )
    schema: Any = found.action.parameters
    assert schema["required"] == ["name"]
    assert schema["properties"] == {
        "name": {"type": "string", "maxLength": 20, "title": "Name"},
        "count": {"type": "number", "title": "Count"},
        "day": {"type": "string", "format": "date", "title": "Day"},
        "news": {"type": "boolean", "title": "News"},
        "colour": {"type": "string", "enum": ["Red", "Blue"], "title": "Colour"},
        "sizes": {
            "type": "array",
            "items": {"type": "string", "enum": ["Red", "Blue"]},
            "title": "Sizes",
        },
        "password": {"type": "string", "format": "secret", "title": "Password"},
        "country": {"type": "string", "title": "Country"},
    }


def test_equal_names_are_numbered_and_never_taken_twice() -> None:
    """A label that looks like a numbered name replaces no other name."""
    links = [{"label": label} for label in ("More", "More", "More 2", "more!")]
    found = [one.action.name for one in offered(links=links)]
    assert found == ["link:more", "link:more-2", "link:more-2-2", "link:more-3"]
    assert [one.index for one in offered(links=links)] == [0, 1, 2, 3]


def test_a_kind_is_a_prefix_that_no_label_can_take() -> None:
    """A button with the name of a link's action, or of a command, has its own prefix."""
    buttons = [{"label": "link:more"}, {"label": "uncaged-workflow run solve-issue"}]
    found = offered(links=[{"label": "More"}], buttons=buttons)
    assert [one.action.name for one in found] == [
        "button:link-more",
        "button:uncaged-workflow-run-solve-issue",
        "link:more",
    ]


def test_a_link_without_words_has_the_last_part_of_its_address() -> None:
    """A malformed address gives it no name."""
    addresses = [f"{URL}shop/lamps/", "https://[broken/lamps"]
    found = offered(links=[{"address": one} for one in addresses])
    assert {one.action.name for one in found} == {"link:lamps", "link:unnamed"}


@pytest.mark.parametrize(
    ("action", "host"),
    [
        (f"{URL}order", ""),
        ("about:srcdoc", ""),
        ("https://evil.test/order", "evil.test"),
        ("https://shop.test:8443/", "shop.test:8443"),
        ("https://shop.test@evil.test/", "shop.test@evil.test"),
        ("javascript:void(0)", "javascript:"),
        ("https://[broken", "unknown"),
    ],
)
def test_a_form_says_where_it_sends(action: str, host: str) -> None:
    """Another host, port or scheme than the page's is named."""
    assert offered(form(field("Name"), action=action))[0].action.host == host


def test_what_a_foreign_frame_offers_is_another_host_s() -> None:
    """A button, a link and a form in a frame of another host name that host, as they lead there; a
    document without an address belongs to the page.
    """
    one = [{"label": "Buy"}]
    offers = {"links": one, "buttons": one, "landmarks": one}
    forms = {"forms": [form(field("Card"), action="https://ads.test/")]}
    for frame, host in (("https://ads.test/x", "ads.test"), ("about:srcdoc", ""), (URL, "")):
        found = actions_of_frame(1, URL, {"forms": []}, offers, frame)
        assert [one.action.host for one in found] == [host, host, ""]
    found = actions_of_frame(1, URL, forms, offers, "https://ads.test/x")
    assert next(found).action.host == "ads.test"


def test_a_button_beside_loose_fields_gives_them_no_name() -> None:
    """Fields outside of a form are named by their own labels; a form by its button's."""
    assert offered(form(field("Comment"), name="", loose=True))[0].action.name == "form:comment"
    assert offered(form(field("Comment"), name=""))[0].action.name == "form:go-on"


def test_one_button_to_another_host_is_enough() -> None:
    """A form whose second button sends elsewhere is one that sends elsewhere."""
    two = form(field("Name"))
    two["buttons"].append({"label": "Other", "action": "https://evil.test/"})
    assert offered(two)[0].action.host == "evil.test"


def test_what_a_page_says_is_checked() -> None:
    """An answer of another shape is refused; a long label is cut."""
    with pytest.raises(ShapeError):
        offered(form({"labels": "Name", "kind": "text"}))
    [found] = offered(links=[{"label": "x" * 10_000}])
    assert len(found.action.label) == 200 and len(found.action.name) == 45
