"""Likeness of names, and the actions that they promise."""

from __future__ import annotations

import pytest
from uncaged_browser.healing.lexicon import ACTIONS, actions_of
from uncaged_browser.healing.likeness import likeness

SAME = 0.62
"""From here on a name is like another."""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Save", "Save changes"),
        ("Send", "Send now"),
        ("E-mail", "Your e-mail address"),
        ("Search", "Find"),
        ("Speichern", "Save"),
        ("Ajouter au panier", "Add to basket"),
        ("Order Blue Lamp", "Buy the Blue Lamp"),
        ("3 items in the cart", "12 items in the basket"),
        ("Add", "Add new"),
        ("Löschen", "Delete"),
        ("Last name", "Family name"),
        ("Show more", "Load more"),
        ("Payment", "How to pay"),
        ("Newsletter", "News by e-mail"),
    ],
)
def test_reworded_names_are_alike(before: str, after: str) -> None:
    """Words of equal meaning, added words, other languages and numbers."""
    assert likeness(before, after) >= SAME


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Save", "Delete account"),
        ("First name", "Last name"),
        ("Orders", "Order now"),
        ("Summary", "Report"),
        ("Order Blue Lamp", "Order Red Chair"),
        ("Delete", "Delete all"),
        ("Password", "Repeat password"),
        ("Shipping address", "Billing address"),
        ("Street", ""),
        ("", ""),
        ("Like", "Unlike"),
    ],
)
def test_names_of_other_things_are_not(before: str, after: str) -> None:
    """A word of its own on both sides, or a word that makes another thing of it."""
    assert likeness(before, after) < SAME


def test_no_word_has_two_actions() -> None:
    """A word in the list of two actions would let one pass for the other."""
    words = [(word, action) for action, listed in ACTIONS.items() for word in set(listed)]
    twice = {word for word, _ in words if len({a for w, a in words if w == word}) > 1}
    assert twice == set()


def test_a_negation_is_another_action() -> None:
    """In each of some languages."""
    assert actions_of("Don't save") != actions_of("Save")
    assert actions_of("Nicht speichern") != actions_of("Speichern")
    assert actions_of("Ne pas envoyer") != actions_of("Envoyer")
