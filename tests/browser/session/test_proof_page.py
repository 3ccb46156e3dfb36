"""Buttons that a proof run does not press without a yes."""

from __future__ import annotations

import pytest
from uncaged_browser.operations import read_operation
from uncaged_browser.session.proof_page import sending_name


def pressed(name: str, role: str = "button") -> str:
    return sending_name(read_operation({"do": "click", "target": [{"role": role, "name": name}]}))


@pytest.mark.parametrize(
    "name",
    [
        *("Buy now", "Pay", "Place order", "Purchase", "Check out", "Book a table", "Reserve"),
        *("Submit", "Send", "Delete", "Remove", "Confirm", "Publish", "Post", "Subscribe"),
        *("Unsubscribe", "Sign up", "Register", "Transfer", "Donate", "Apply", "Approve", "Cancel"),
        *("Jetzt kaufen", "Löschen", "Envoyer", "Comprar"),
    ],
)
def test_a_button_that_promises_to_send_needs_a_yes(name: str) -> None:
    """A name with such an action, in any of the languages of the list."""
    assert name in pressed(name)


@pytest.mark.parametrize("name", ["Next", "Search", "Show more", "Weiter"])
def test_other_buttons_are_pressed(name: str) -> None:
    """The control: a button that only looks further, and a link with the same words."""
    assert pressed(name) == ""
    assert pressed("Delete", role="link") == ""
