"""Element that is not found: the operation on it, the names in its target, and the facts that were
noted with them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from uncaged_bundles.records import dataclass

from ..elements.facts import ElementFacts
from ..elements.targets import ElementName
from ..operations import (
    Click,
    Drag,
    Fill,
    Hover,
    Operation,
    Press,
    Select,
    SetChecked,
    Type,
    Upload,
)
from ..secrets import name_of_secret

__all__ = ["HEALED", "SoughtElement", "sought_of"]

HEALED = (Click, Fill, Type, Press, Select, SetChecked, Upload, Hover, Drag)
"""Operations whose element is looked for. What only reads is not: another element has another
text.
"""
ATTRIBUTE = re.compile(r'\[(name|id|placeholder|aria-label|title)="?([^"\]]+)"?\]')
CSS_ID = re.compile(r"^#([A-Za-z_][\w-]*)$")
CLICKED = frozenset(
    [
        "button",
        "link",
        "menuitem",
        "menuitemradio",
        "menuitemcheckbox",
        "tab",
        "option",
        "treeitem",
        "switch",
        "summary",
        "gridcell",
    ]
)
TYPED = frozenset(["textbox", "searchbox", "combobox", "spinbutton"])
CHECKED = frozenset(["checkbox", "radio", "switch"])
EDITABLE = "contenteditable"
"""Type of an area for writing that is no form field."""
LISTS = frozenset(["combobox", "listbox"])
FIELDS = TYPED | LISTS | CHECKED | {"slider"}
OPERABLE = frozenset(["a", "button", "canvas", "input", "option", "select", "summary", "textarea"])
"""Tags of elements that are operable whatever else is known about them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SoughtElement:
    """facts: all that is known. key: of the operation, ``target`` or ``onto``. names: the target's
    alternatives. secret: a secret is typed into it. values: those of its names that are data of
    the run. several: several elements have its names.
    """

    operation: Operation
    key: str
    names: tuple[ElementName, ...]
    facts: ElementFacts
    secret: bool = False
    values: tuple[str, ...] = ()
    several: bool = False

    @property
    def also(self) -> str:
        """Return the tag of an element that nothing shows to be operable; else nothing."""
        facts = self.facts
        return facts.tag if facts.role not in CLICKED | FIELDS and facts.tag not in OPERABLE else ""

    @property
    def told(self) -> frozenset[str]:
        """Return the texts that tell it from its equals, if nothing else does."""
        alone = all(one.near for one in self.names)
        return frozenset(text for one in self.names if alone for text in one.near)

    def fits(self, one: ElementFacts) -> bool:
        """Whether the operation is possible on an element, and it is of the same kind."""
        known = self.facts
        if "password" in (known.type, one.type) or self.secret:
            return one.type == "password" and (known.type in ("password", "") or self.secret)
        match self.operation:
            case Upload():
                return one.type == "file"
            case SetChecked():
                return one.role in CHECKED and known.role in ("", one.role)
            case Select():
                return one.tag == "select" or (one.role in LISTS and known.role == one.role)
            case Fill() | Type():
                of_same_role = one.role != "" and one.role == known.role and one.tag == known.tag
                typed = one.role in TYPED or one.tag == "textarea"
                editable = one.type == known.type == EDITABLE
                return (typed and one.tag != "select") or of_same_role or editable
            case _:
                return _group(one) == _group(known) or not known.role


def _group(one: ElementFacts) -> str:
    if one.role in CLICKED or one.tag == "summary":
        return "clicked"
    if one.role in TYPED | LISTS or one.tag in ("textarea", "select"):
        return "field"
    return one.role or one.tag


def sought_of(operation: Operation, key: str = "target") -> SoughtElement | None:
    """Return what an operation says of its element; None if it is not one that is looked for, or
    names none.
    """
    names = tuple(getattr(operation, key, None) or ())
    if not isinstance(operation, HEALED) or not names or any(one.way == "ref" for one in names):
        return None
    noted = getattr(operation, "facts" if key == "target" else "onto_facts", None)
    text = getattr(operation, "text", "")
    return SoughtElement(
        operation=operation,
        key=key,
        names=names,
        facts=_with_names(noted or ElementFacts(), names),
        secret=name_of_secret(text) is not None,
    )


def _with_names(facts: ElementFacts, names: Sequence[ElementName]) -> ElementFacts:
    """Add what the alternatives say to the facts; a fact that was noted is kept."""
    found: dict[str, str] = {}

    def add(key: str, value: str | None) -> None:
        if value:
            found.setdefault(key, value)

    for one in names:
        match one.way:
            case "role":
                add("role", one.value)
                add("name", one.name)
            case "label":
                add("label", one.value)
            case "placeholder":
                add("placeholder", one.value)
            case "testId":
                add("test_id", one.value)
            case "text":
                add("text", one.value)
            case "css":
                for key, value in ATTRIBUTE.findall(one.value):
                    add({"name": "field", "aria-label": "name"}.get(key, key), value)
                by_id = CSS_ID.match(one.value)
                add("id", by_id[1] if by_id else None)
            case _:
                pass
    near = tuple(text for one in names for text in one.near)
    if near:  # the texts that tell it from its equals
        facts = replace(facts, near=tuple(dict.fromkeys((*near, *facts.near))))
    added: dict[str, Any] = {key: one for key, one in found.items() if not getattr(facts, key)}
    return replace(facts, **added)
