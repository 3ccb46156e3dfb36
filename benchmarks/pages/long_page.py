"""Page of 19 actions of four kinds; each changes the page's heading."""

from __future__ import annotations

from .case import PageCase, shell
from .draw import Draw
from .person import Person
from .tree import Element, el

__all__ = ["LONG_STEPS", "WORDS", "kind_of", "long_case"]

WORDS = (
    *("Amber", "Birch", "Cedar", "Delta", "Ember", "Fjord", "Grove", "Haven", "Inlet", "Jetty"),
    *("Knoll", "Lagoon", "Marsh", "North", "Oasis", "Plain", "Quarry", "Ridge", "Shore"),
)
"""The label of each control, and the heading after its action."""
LONG_STEPS = len(WORDS) + 1
"""Steps of the page's recording; the first one loads it."""
KINDS = ("fill", "check", "click", "select")


def kind_of(number: int) -> str:
    """Return the kind of an action by its number, from 0."""
    return KINDS[number % len(KINDS)]


def long_case(draw: Draw) -> PageCase:
    """Return the page."""
    controls = [_control(number, word) for number, word in enumerate(WORDS)]
    script = f"""
    const words = {list(WORDS)!r}, types = ['input', 'change', 'click', 'change'];
    words.forEach((word, index) => on(word, types[index % 4], () => {{
      document.querySelector('h1').textContent = word;
      if (index === words.length - 1) act('done'); }}));"""

    async def perform(person: Person) -> None:
        for number, word in enumerate(WORDS):
            match kind_of(number):
                case "fill":
                    await person.fill(**{word: "text"})
                case "select":
                    await person.select(word, "Second")
                case _:
                    await person.click(word)

    return PageCase(
        document=shell(draw, "Steps", *controls, script=script),
        values={},
        acts=("done",),
        perform=perform,
    )


def _control(number: int, word: str) -> Element:
    match kind_of(number):
        case "fill":
            return el("p", el("label", word, " ", el("input", data_h=word)))
        case "check":
            return el("p", el("label", el("input", type="checkbox", data_h=word), " ", word))
        case "select":
            options = (el("option", one) for one in ("First", "Second"))
            return el("p", el("select", *options, aria_label=word, data_h=word))
        case _:
            return el("p", el("button", word, type="button", data_h=word))
