"""The fetch effect reads a page and answers with what a reader would want of it.

``{"fetch": {"url", "as": "markdown" | "text" | "html" | "selector", "selector"?, "timeout_s"?}}``
answers ``{"url", "title", "text"}``. Anything but a page that was found is a failure. A text that
is no HTML (plain text, JSON, a feed) is answered as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Annotated, Literal, get_args

from uncaged_bundles import shapes
from uncaged_bundles.limits import FetchLimits
from uncaged_bundles.records import dataclass
from uncaged_engine.door.bodies import Seconds, read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Failure, Outcome
from uncaged_engine.services.network import HostRules, RequestCancelled, WebProblem, read_target

from .web.client import CLIENTS, Clients
from .web.content import TEXTUAL, decoded, kind_of
from .web.credentials import Credentials
from .web.errand import Errand, run
from .web.exchange import Received
from .web.limits import limits_of
from .web.request import Request

Form = Literal["markdown", "text", "html", "selector"]
FORMS: tuple[Form, ...] = get_args(Form)
HTML = ("text/html", "application/xhtml+xml")
ACCEPT = "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,*/*;q=0.5"
SHOWN_CHARACTERS = 300
WORK_S = 10.0
"""A page that takes longer to read than this, once it is there, was made to."""

ANSWER = {
    "type": "object",
    "required": ["url", "title", "text"],
    "properties": {key: {"type": "string"} for key in ("url", "title", "text")},
}
"""JSON Schema of an outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchBody:
    """form: of the text; None is Markdown, or the selected parts where a selector is given."""

    url: Annotated[str, shapes.filled]
    form: Annotated[Form | None, shapes.one_of(*FORMS), "as"] = None
    selector: str = ""
    timeout_s: Seconds = None

    def __post_init__(self) -> None:
        if bool(self.selector.strip()) is not (self.chosen_form == "selector"):
            raise shapes.ShapeError(
                ("selector",), 'is a CSS selector, and goes with "as": "selector"'
            )

    @property
    def chosen_form(self) -> Form:
        return self.form or ("selector" if self.selector else "markdown")


class FetchHandler(Handler):
    kind = "fetch"
    answers: Mapping[str, object] = ANSWER
    recovery: Rule = "repeat"
    limits = FetchLimits

    def __init__(self, clients: Clients = CLIENTS) -> None:
        self._clients = clients

    def perform(self, body: object, context: EffectContext) -> Outcome:
        asked = read_body("fetch", FetchBody, body)
        if isinstance(asked, Failure):
            return asked
        policy = context.bundle.descriptor.policy.limits.get(self.kind, {})
        limits = limits_of(asked.timeout_s, FetchLimits.of(policy))

        def errand() -> Errand:
            request = Request(
                method="GET", target=read_target(asked.url), headers=(("Accept", ACCEPT),)
            )
            return Errand(request=request, rules=HostRules.of("fetch", policy), limits=limits)

        def make(received: Received, _: Credentials) -> object:
            end_s = time.monotonic() + min(limits.total_s, WORK_S)
            return page_of(received, asked, lambda: go_on(end_s, context))

        return run(errand, make, kind=self.kind, context=context, clients=self._clients)


def page_of(received: Received, asked: FetchBody, check: Callable[[], object]) -> dict[str, str]:
    """Make the answer of what came back; raises WebProblem for whatever is no page."""
    kind, charset = kind_of(received)
    if not 200 <= received.status < 300:
        start = " ".join((decoded(received.body[:4096], charset, certain=True) or "").split())[
            :SHOWN_CHARACTERS
        ]
        raise WebProblem(
            "status", f"the server answered {received.status}" + (f": {start}" if start else "")
        )
    from .web.page import Page, declared_charset, title_of

    is_html = kind in HTML or (kind == "" and received.body.lstrip()[:1] == b"<")
    text = decoded(
        received.body,
        charset or (declared_charset(received.body) if is_html else ""),
        certain=is_html or known_text(kind),
    )
    if text is None:
        raise WebProblem(
            "body",
            f"this is no page but {kind or 'something without a type'}; an http effect gets its bytes",
        )
    url = received.target.url
    if not is_html and asked.chosen_form != "selector":
        return {"url": url, "title": "", "text": text}
    if asked.chosen_form == "html":
        return {"url": url, "title": title_of(text), "text": text}
    page = Page(text, url, check)
    title = page.title
    match asked.chosen_form:
        case "markdown":
            return {"url": url, "title": title, "text": page.markdown()}
        case "text":
            return {"url": url, "title": title, "text": page.text()}
        case "selector":
            return {"url": url, "title": title, "text": page.selected(asked.selector)}


def known_text(kind: str) -> bool:
    return TEXTUAL.fullmatch(kind) is not None


def go_on(end_s: float, context: EffectContext) -> None:
    if context.cancel.requested:
        raise RequestCancelled
    if time.monotonic() > end_s:
        raise WebProblem(
            "timeout", "the page could not be worked through in time; ask for it as html"
        )
