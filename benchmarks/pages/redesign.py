"""Rule by which a page is redesigned: other classes and ids, another order of independent siblings,
lightly reworded texts, and wrappers around controls.

The rule knows the page's number and nothing of how elements are recorded or searched. What a person
does and what the page does stay the same; texts of the data and addresses do, too.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace

from .tree import RAW, Data, Element, Node, el

__all__ = ["SYNONYMS", "redesigned"]

SYNONYMS = {
    "Save": "Save changes",
    "Save draft": "Keep draft",
    "Cancel": "Discard",
    "Delete": "Remove",
    "Add to cart": "Add to basket",
    "Add": "Add new",
    "Cart": "Basket",
    "Search": "Find",
    "Send": "Send now",
    "Next": "Continue",
    "Back": "Previous step",
    "Close": "Dismiss",
    "Name": "Full name",
    "First name": "Given name",
    "Last name": "Family name",
    "E-mail": "E-mail address",
    "Phone": "Telephone",
    "City": "Town",
    "Street": "Street and number",
    "Message": "Your message",
    "Settings": "Preferences",
    "Confirm": "Yes, confirm",
    "Book": "Reserve",
    "Upload": "Upload file",
    "Country": "Country or region",
    "Department": "Team",
    "Date": "Day",
    "Start": "Begin",
    "Details": "More details",
    "Edit": "Edit entry",
    "Open": "Open item",
    "Filter": "Filter list",
    "Sort": "Sort by",
    "Apply": "Apply now",
    "Colour": "Shade",
    "Quantity": "Amount",
    "Size": "Format",
    "Title": "Headline",
    "Priority": "Urgency",
    "Assign": "Assign to",
    "Archive": "Move to archive",
    "Share": "Share with others",
    "Export": "Export data",
    "Sign in": "Log in",
    "Profile": "My profile",
    "Orders": "My orders",
    "Notes": "Remarks",
    "Comment": "Your comment",
    "Newsletter": "News by e-mail",
    "Remember me": "Stay signed in",
    "Help": "Help and contact",
    "More": "More actions",
    "Done": "Finished",
    "Rename": "Change name",
    "Duplicate": "Make a copy",
    "Reset": "Start over",
    "Show more": "Load more",
    "Choose date": "Pick a date",
    "Choose file": "Select file",
    "Report": "Summary",
    "Delivery": "Shipping",
    "Payment": "How to pay",
    "Account": "My account",
    "Volume": "Loudness",
    "Budget": "Available budget",
}
"""Text of a page by the one that takes its place."""
REWORDED_OF_TEN = 4
"""So many of ten texts that have a synonym are reworded on a page."""
TEXT_ATTRIBUTES = ("aria-label", "placeholder", "title", "alt")
ID_ATTRIBUTES = ("id", "for", "aria-labelledby", "aria-describedby", "aria-controls", "list")
CONTROLS = frozenset({"button", "select", "textarea", "input"})
UNWRAPPED_TYPES = frozenset({"hidden", "file"})


def redesigned(page: Element, number: int) -> Element:
    """Return a page's tree as it is after the redesign."""
    return _Redesign(number).change(page)


class _Redesign:
    """The rule for one page."""

    def __init__(self, number: int) -> None:
        self._number = number

    def change(self, node: Element) -> Element:
        """Return an element with all that is in it after the redesign."""
        if node.tag == "style":
            return node.mapped(lambda child: self._renamed_rules(str(child)))
        if node.tag in RAW:
            return node
        node = replace(
            node, attributes={key: self._attribute(node, key) for key in node.attributes}
        )
        children = tuple(self._child(node, child) for child in node.children)
        if node.free:
            children = self._reordered(children)
        return replace(node, children=children)

    def _child(self, parent: Element, child: Node) -> Node:
        if isinstance(child, str):
            return self._text(child)
        changed = self.change(child)
        if parent.tag == "main":
            return el("div", changed, class_=self._word("part"))
        if child.tag in CONTROLS and child.attributes.get("type") not in UNWRAPPED_TYPES:
            return el("span", changed, class_=self._word("holder"))
        return changed

    def _attribute(self, node: Element, key: str) -> str:
        value = node.attributes[key]
        if key == "class":
            return " ".join(self._word(word) for word in value.split())
        if key in ID_ATTRIBUTES:
            return " ".join(self._word(word) for word in value.split())
        if key == "href" and value.startswith("#") and len(value) > 1 and value[1] != "/":
            return f"#{self._word(value[1:])}"
        if key in TEXT_ATTRIBUTES or (key == "value" and node.attributes.get("type") == "submit"):
            return self._text(value)
        return value

    def _text(self, text: str) -> str:
        if isinstance(text, Data):
            return text
        bare = text.strip()
        other = SYNONYMS.get(bare)
        if other is None or self._chance(f"text {bare}", 10) >= REWORDED_OF_TEN:
            return text
        return text.replace(bare, other)

    def _reordered(self, children: tuple[Node, ...]) -> tuple[Node, ...]:
        """Return independent siblings in another order: reversed, or the first one last."""
        if self._chance(f"order {len(children)}", 2):
            return children[::-1]
        return (*children[1:], *children[:1])

    def _renamed_rules(self, rules: str) -> str:
        """Return a style sheet with the new classes and ids."""
        return re.sub(
            r"([.#])([a-z][\w-]*)(?=[^{}]*\{)",
            lambda found: f"{found[1]}{self._word(found[2])}",
            rules,
        )

    def _word(self, word: str) -> str:
        """Return the new name of a class or id; it has nothing of the old one."""
        names = ("box", "item", "unit", "piece", "block", "cell", "line", "group")
        digest = self._digest(word)
        letters = "".join(chr(ord("a") + digit % 26) for digit in digest[1:5])
        return f"{names[digest[0] % len(names)]}-{letters}"

    def _chance(self, words: str, sides: int) -> int:
        return self._digest(words)[0] % sides

    def _digest(self, words: str) -> bytes:
        return hashlib.sha256(f"{self._number} {words}".encode()).digest()
