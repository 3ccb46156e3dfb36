"""One page on one seed of data: documents, a person's actions, and what the page must report."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .draw import Draw
from .person import Person
from .redesign import redesigned
from .tree import Element, Node, el, free, render

__all__ = ["OTHER_ORIGIN", "PageCase", "Template", "shell"]

RUNTIME = Path(__file__).with_name("runtime.js").read_text("utf-8")
STYLE = """body { font: 15px/1.4 sans-serif; margin: 0 12px } [hidden] { display: none !important }
button, input, select { margin: 2px } main > * { margin: 8px 0 } a { margin-right: 6px }"""
OTHER_ORIGIN = "http://other-origin.invalid"
"""In a document, the origin of a second site that serves the same page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCase:
    """values: what the person wants, by names; the parameters of a recording. acts: what the page
    must have been made to do, in order. others: further documents by path.
    """

    document: Element
    values: Mapping[str, str]
    acts: tuple[str, ...]
    perform: Callable[[Person], Awaitable[None]]
    others: Mapping[str, Element] = field(default_factory=dict)

    def html(self, path: str, redesign: int | None = None) -> str | None:
        """Return a document; None if there is none. redesign: the page's number."""
        tree = self.document if path == "/" else self.others.get(path)
        if tree is None:
            return None
        changed = tree if redesign is None else redesigned(tree, redesign)
        return f"<!doctype html>{render(changed)}"


Template = Callable[[Draw], PageCase]


def shell(draw: Draw, title: str, *content: Node, script: str, bare: bool = False) -> Element:
    """Return a document. bare: without the parts around the content that a site has."""
    links = [
        el("a", word, href="#", data_h=f"nav-{word}", class_=draw.css("link"))
        for word in ("Home", "Orders", "Account", "Help")
    ]
    report = "".join(
        f"on('nav-{word}', 'click', () => act('left', '{word}'));" for word in ("Home", "Orders")
    )
    header = el("header", el("h1", title), free(el("nav", *links)), class_=draw.css("header"))
    footer = el("footer", el("p", "Terms and privacy"), el("button", "Newsletter", type="button"))
    around = not bare
    head = (
        el("meta", charset="utf-8"),
        el("title", title),
        el("style", STYLE),
    )
    return el(
        "html",
        el("head", *head),
        el(
            "body",
            *([header] if around else []),
            el("main", *content),
            *([footer] if around else []),
            el("script", RUNTIME + (report if around else "") + script),
        ),
        lang="en",
    )
