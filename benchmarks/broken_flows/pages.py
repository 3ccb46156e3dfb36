"""Web flows whose pages are redesigned."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..outside.service import NOT_FOUND, Answer, Request, page
from .case import BrokenFlow, Fix, Parameters, Recipe, World
from .making import NAMES, drawn

__all__ = ["cases"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Names of a page's field and buttons. decoys: further buttons."""

    field: str = "Search"
    button: str = "Go"
    key: str = "q"
    css: str = "box"
    decoys: Sequence[str] = ()


OLD = Design()
REDESIGNS: Sequence[tuple[Design, Fix]] = (
    (Design(button="Search the shop", css="c1"), "one"),
    (Design(field="Search term", css="c2"), "one"),
    (Design(field="Search articles", button="Go!", css="c3"), "one"),
    (Design(button="Go to cart", css="c4", decoys=("Go to checkout",)), "none"),
)
"""The page afterwards, and whether it still does what the flow did."""


def cases(seed: int, url: str) -> Iterator[BrokenFlow]:
    for number, (design, fix) in enumerate(REDESIGNS, 1):
        yield redesigned(seed, url, f"page-{number}", design, fix)


def redesigned(seed: int, url: str, name: str, design: Design, fix: Fix) -> BrokenFlow:
    names = drawn(seed, name).sample(NAMES, 6)
    sets: list[Parameters] = [{"words": one} for one in names]
    recipe = flow(name, url, OLD)
    right = flow(name, url, design)
    return BrokenFlow(
        name=f"web-{name}",
        family="page redesigned",
        fix=fix,
        recipe=recipe,
        past=sets[:3],
        failing=sets[3],
        others=sets[4:],
        before=World(answer=shop(OLD, finds=True)),
        after=World(answer=shop(design, finds=fix == "one")),
        truth=lambda one: f"{one['words']} in the shop",
        right=right if fix == "one" else None,
        mistaken=flow(name, url, replace(design, button="Help")),
    )


def shop(design: Design, *, finds: bool) -> Callable[[Request], Answer]:
    """Return a shop's service. finds: whether its main button searches."""
    first = f'<label>{design.field} <input name={design.key} id={design.css} class="{design.css}-in"></label>'
    action = "/find" if finds else "/cart"
    decoys = "".join(f"<button formaction=/other>{one}</button>" for one in design.decoys)
    start = (
        f"<!doctype html><title>Shop</title><h1>Shop</h1><a href=/help>Help</a>"
        f'<form action={action}>{first}<button class="{design.css}-b">{design.button}</button>{decoys}</form>'
        "<button onclick=\"location='/help'\">Help</button>"
    )

    def reply(request: Request) -> Answer:
        if request.path == "/":
            return page(start)
        words = html.escape(request.query.get(design.key, ""))
        shown = {
            "/find": f"{words} in the shop",
            "/cart": "The cart is empty",
            "/other": "Pay now",
            "/help": "No help",
        }
        if request.path not in shown:
            return NOT_FOUND
        return page(f"<!doctype html><title>Page</title><main>{shown[request.path]}</main>")

    return reply


def flow(name: str, url: str, design: Design) -> Recipe:
    """Return the recipe of a flow that uses a page of this design."""
    field = [{"label": design.field}, {"css": f"#{design.css}"}]
    button = [{"role": "button", "name": design.button}, {"css": f".{design.css}-b"}]
    return {
        "kind": "web",
        "name": f"visit-{name}",
        "description": "Find something in the shop.",
        "parameters": {"words": {"type": "string", "required": True, "description": "words"}},
        "scope": {"type": "site", "domains": [url.removeprefix("http://")], "private": True},
        "grammarPatterns": [],
        "source": {"type": "recording", "originUrl": f"{url}/"},
        "steps": [
            {"do": "navigate", "url": f"{url}/"},
            {"do": "fill", "target": field, "text": "${words}"},
            {"do": "click", "target": button, "expect": {"url": "/find"}},
            {"do": "text", "target": {"role": "main"}, "keep": "found"},
        ],
    }
