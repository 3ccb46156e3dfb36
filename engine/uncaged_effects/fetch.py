"""The effect `fetch`: a page as Markdown, text, HTML or selected parts.

``{"fetch": {"url", "as": "markdown" | "text" | "html" | "selector", "selector"?, "timeout_s"?}}``
answers ``{"url", "title", "text"}``. A status other than success is a failure. Text that is not
HTML (plain text, JSON, a feed) is returned unchanged.
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
from uncaged_engine.door.past import PastEffect
from uncaged_engine.services.network import HostRules, RequestCancelled, WebProblem, read_target

from .web.client import CLIENTS, Clients
from .web.content import TEXTUAL, decode_text, media_type
from .web.credentials import Credentials
from .web.exchange import ExchangeLimits, HttpResponse
from .web.limits import limits_of
from .web.perform import RequestSpec, past_refusal, perform_request
from .web.request import HttpRequest

Form = Literal["markdown", "text", "html", "selector"]
FORMS: tuple[Form, ...] = get_args(Form)
HTML = ("text/html", "application/xhtml+xml")
ACCEPT = "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,*/*;q=0.5"
SHOWN_CHARACTERS = 300
WORK_S = 10.0
"""Time limit for converting a page that has arrived."""

ANSWER = {
    "type": "object",
    "required": ["url", "title", "text"],
    "properties": {key: {"type": "string"} for key in ("url", "title", "text")},
}
"""JSON Schema of an outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchBody:
    """Body of a ``fetch`` effect. form: of the text; None is Markdown, or with a selector the parts
    that match it.
    """

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
    decided_limits = frozenset({"hosts"})

    def __init__(self, clients: Clients = CLIENTS) -> None:
        self._clients = clients

    def perform(self, body: object, context: EffectContext) -> Outcome:
        options = read_body("fetch", FetchBody, body)
        if isinstance(options, Failure):
            return options
        policy = context.bundle.descriptor.policy.limits.get(self.kind, {})
        limits = limits_of(options.timeout_s, FetchLimits.of(policy))

        def convert(response: HttpResponse, _: Credentials) -> object:
            end_s = time.monotonic() + min(limits.total_s, WORK_S)
            return page_of(response, options, lambda: check_progress(end_s, context))

        return perform_request(
            lambda: spec_of(options, policy, limits),
            convert,
            kind=self.kind,
            context=context,
            clients=self._clients,
        )

    def past_refusal(self, past: PastEffect) -> str | None:
        options = read_body("fetch", FetchBody, past.body)
        if isinstance(options, Failure):
            return None
        limits = limits_of(options.timeout_s, FetchLimits.of(past.limits))
        return past_refusal(lambda: spec_of(options, past.limits, limits), past)


def spec_of(
    options: FetchBody, policy: Mapping[str, object], limits: ExchangeLimits
) -> RequestSpec:
    request = HttpRequest(
        method="GET", target=read_target(options.url), headers=(("Accept", ACCEPT),)
    )
    return RequestSpec(request=request, rules=HostRules.of("fetch", policy), limits=limits)


def page_of(
    response: HttpResponse, options: FetchBody, check: Callable[[], object]
) -> dict[str, str]:
    """Return the outcome for a response; raises WebProblem if it is no page."""
    kind, charset = media_type(response)
    if not 200 <= response.status < 300:
        start = " ".join((decode_text(response.body[:4096], charset, certain=True) or "").split())[
            :SHOWN_CHARACTERS
        ]
        raise WebProblem(
            "status", f"the server answered {response.status}" + (f": {start}" if start else "")
        )
    from .web.page import Page, declared_charset, title_of

    is_html = kind in HTML or (kind == "" and response.body.lstrip()[:1] == b"<")
    text = decode_text(
        response.body,
        charset or (declared_charset(response.body) if is_html else ""),
        certain=is_html or is_textual(kind),
    )
    if text is None:
        raise WebProblem(
            "body",
            f"this is no page but {kind or 'something without a type'}; an http effect gets its bytes",
        )
    url = response.target.url
    if not is_html and options.chosen_form != "selector":
        return {"url": url, "title": "", "text": text}
    if options.chosen_form == "html":
        return {"url": url, "title": title_of(text), "text": text}
    page = Page(text, url, check)
    title = page.title
    match options.chosen_form:
        case "markdown":
            return {"url": url, "title": title, "text": page.markdown()}
        case "text":
            return {"url": url, "title": title, "text": page.text()}
        case "selector":
            return {"url": url, "title": title, "text": page.selected(options.selector)}


def is_textual(kind: str) -> bool:
    return TEXTUAL.fullmatch(kind) is not None


def check_progress(end_s: float, context: EffectContext) -> None:
    if context.cancel.requested:
        raise RequestCancelled
    if time.monotonic() > end_s:
        raise WebProblem("timeout", "the page could not be converted in time; ask for it as html")
