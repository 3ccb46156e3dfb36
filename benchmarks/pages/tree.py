"""Tree of HTML elements, from which the pages are built and which the redesign changes."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

__all__ = ["Data", "Element", "Node", "el", "free", "render"]

VOID = frozenset({"input", "img", "br", "hr", "meta", "link"})
RAW = frozenset({"script", "style"})


class Data(str):
    """A text that comes from the page's data, which no redesign changes."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """free: the order of the children has no meaning, so that a redesign may change it."""

    tag: str
    attributes: Mapping[str, str] = field(default_factory=dict)
    children: tuple[Node, ...] = ()
    free: bool = False

    def changed(self, **attributes: str) -> Element:
        """Return a copy with other or further attributes."""
        return replace(self, attributes={**self.attributes, **attributes})

    def mapped(self, change: Callable[[Node], Node]) -> Element:
        """Return a copy with each child changed."""
        return replace(self, children=tuple(change(child) for child in self.children))


Node = Element | str


def el(tag: str, /, *children: Node, **attributes: str) -> Element:
    """Return an element. An underscore at the end of an attribute's name is left out, the others
    are hyphens.
    """
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    return Element(tag=tag, attributes=names, children=children)


def free(element: Element) -> Element:
    """Return an element whose children may be in any order."""
    return replace(element, free=True)


def render(node: Node) -> str:
    """Return a node as HTML; an attribute with an empty value is written by its name."""
    if isinstance(node, str):
        return html.escape(node, quote=False)
    attributes = "".join(
        f' {name}="{html.escape(value)}"' if value else f" {name}"
        for name, value in node.attributes.items()
    )
    if node.tag in VOID:
        return f"<{node.tag}{attributes}>"
    if node.tag in RAW:
        inside = "".join(child for child in node.children if isinstance(child, str))
    else:
        inside = "".join(render(child) for child in node.children)
    return f"<{node.tag}{attributes}>{inside}</{node.tag}>"
