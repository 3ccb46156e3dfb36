"""Choices of which a page is made: those of its design follow from its number, those of its data
from number and seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import TypeVar

from .tree import Data, Element, Node, el, free

__all__ = ["Draw"]

Item = TypeVar("Item")
CLASS_STYLES = ("plain", "bem", "modules", "utility", "emotion")


class Draw:
    """The choices for one page. variant: the number of the page among those of its template.
    design: the same for all seeds. data: differs for each seed. directory: has the files that the
    person chooses.
    """

    def __init__(self, number: int, variant: int, seed: int, directory: Path) -> None:
        self.directory = directory
        self.number = number
        self.variant = variant
        self.seed = seed
        self.design = Random(f"design {number}")  # noqa: S311 - no secrets
        self.data = Random(f"data {number} {seed}")  # noqa: S311 - no secrets

    def pick(self, *options: Item) -> Item:
        """Choose one of several designs."""
        return self.design.choice(options)

    def some(self, words: Sequence[str], count: int) -> list[Data]:
        """Choose so many different texts as data."""
        return [Data(word) for word in self.data.sample(list(words), count)]

    def any(self, options: Sequence[Item]) -> Item:
        """Choose one of several data."""
        return self.data.choice(list(options))

    def number_of(self, low: int, high: int) -> int:
        """Choose a number as data."""
        return self.data.randint(low, high)

    def css(self, word: str) -> str:
        """Return a class as one of five kinds of sites writes it; two of them change it with each
        build; each seed is another build.
        """
        digest = hashlib.sha256(f"{word} {self.number} {self.seed}".encode()).hexdigest()
        match CLASS_STYLES[self.variant % len(CLASS_STYLES)]:
            case "bem":
                return f"c-{word} c-{word}--default"
            case "modules":
                return f"{word.title()}_{word}__{digest[:5]}"
            case "utility":
                return "flex items-center gap-2 rounded px-3"
            case "emotion":
                return f"css-{digest[:6]}"
            case _:
                return word

    def id(self, word: str) -> str:
        """Return an id; on some pages it is generated with each load."""
        if self.variant % 3 == 1:
            digest = hashlib.sha256(f"{word} {self.seed}".encode()).hexdigest()
            return f"{word}-{int(digest[:6], 16) % 9000 + 1000}"
        return word if self.variant % 3 == 0 else f"f_{word}"

    def field(self, label: str, control: Element, *, style: int | None = None) -> Element:
        """Return a control with its label, in one of five ways that pages have."""
        id = self.id(label.lower().replace(" ", "-"))
        group = self.css("field")
        match self.variant % 5 if style is None else style:
            case 0:
                return el("div", el("label", label, for_=id), control.changed(id=id), class_=group)
            case 1:
                return el("p", el("label", label, " ", control))
            case 2:
                return el("div", control.changed(**{"aria-label": label}), class_=group)
            case 3:
                if control.tag == "select":
                    return el("label", el("span", label), " ", control, class_=group)
                return el("div", control.changed(placeholder=label), class_=group)
            case _:
                named = control.changed(**{"aria-labelledby": f"{id}-label"})
                return el("div", el("span", label, id=f"{id}-label"), named, class_=group)

    def button(self, text: str, hook: str, **attributes: str) -> Element:
        """Return a button."""
        kind = self.css("button")
        return el("button", text, type="button", data_h=hook, class_=kind, **attributes)

    def icon(self, hook: str, **attributes: str) -> Element:
        """Return a button that has a picture and no name."""
        picture = el(
            "svg", el("path", d="M2 8h12M8 2v12"), width="16", height="16", aria_hidden="true"
        )
        return el(
            "button", picture, type="button", data_h=hook, class_=self.css("icon"), **attributes
        )

    def options(self, items: Sequence[str], **attributes: str) -> Element:
        """Return a list to select from."""
        listed = (el("option", Data(item), value=item.lower().replace(" ", "-")) for item in items)
        first = el("option", "Please choose", value="")
        return el("select", first, *listed, class_=self.css("select"), **attributes)

    def toolbar(self, *controls: Node) -> Element:
        """Return controls in a row, whose order has no meaning."""
        return free(el("div", *controls, class_=self.css("toolbar")))
