"""Pages of web flows: what a failed flow finds on its page by now, and trials of a changed one in a
fresh context of the browser session, which sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from uncaged_browser.effect.limits import BrowserLimits
from uncaged_browser.effect.parts import part_that_is_off
from uncaged_browser.healing.versions import was_rejected
from uncaged_browser.operations import read_operation
from uncaged_browser.problems import BrowserProblem
from uncaged_browser.session.address import DEFAULT_SESSION
from uncaged_browser.session.client import SessionClient, SessionGone
from uncaged_browser.session.healed_replay import replay_healed
from uncaged_browser.session.proof_page import NotRepeated, ProofPage
from uncaged_bundles import shapes
from uncaged_bundles.builders.recipes.flows import WebFlow
from uncaged_bundles.builders.recipes.recipe_flow import flow_of
from uncaged_bundles.errors import EnvironmentLacks, without_thread
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.api import Engine
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void
from uncaged_engine.services.secrets import secret_value
from uncaged_engine.services.trials import TrialEffect

from .case import FixCase

__all__ = ["WEB", "look_at_page", "trial_page"]

WEB = "web"

Perform = Callable[[TrialEffect], Outcome | None]


def look_at_page(
    engine: Engine, bundle: Bundle, case: FixCase, environment: Mapping[str, str]
) -> Mapping[str, Any] | None:
    """Perform the steps of a failed web flow on its page as it is by now, and search what moved;
    None if that was not how it failed, or it has no steps.

    Returns:
        The document of a `HealedReplay`; ``{"problem": reason}`` if the page cannot be looked at.
    """
    flow = flow_of(bundle) if bundle.descriptor.kind == WEB else None
    if not isinstance(flow, WebFlow) or not flow.steps or not case.is_moved:
        return None
    try:
        with _page(engine, bundle, environment) as page:
            found = replay_healed(
                page,
                flow.steps,
                case.params,
                lambda healed: was_rejected(healed, engine.store, bundle.hash),
            )
            return found.document()
    except (BrowserProblem, EnvironmentLacks, SessionGone, shapes.ShapeError) as exc:
        return {"problem": without_thread(exc)}


@contextmanager
def trial_page(engine: Engine, bundle: Bundle, environment: Mapping[str, str]) -> Iterator[Perform]:
    """Yield what performs the browser effects of one trial of a bundle."""
    with ExitStack() as stack:
        try:
            page = stack.enter_context(_page(engine, bundle, environment))
        except (BrowserProblem, EnvironmentLacks, SessionGone) as exc:
            reason = without_thread(exc)
            yield lambda effect: _held(effect, reason)
            return
        yield lambda effect: _performed(page, effect)


def _performed(page: ProofPage, effect: TrialEffect) -> Outcome | None:
    if effect.kind != "browser" or effect.flows:
        return None
    try:
        body = shapes.mapping(effect.body, ("browser",))
        return Answer(fields={"outcome": page.perform(effect.seq, body)})
    except shapes.ShapeError as exc:  # an operation that no page performs, such as a question
        return Void(word="environment", message=f"it is not tried in a page: {exc}")
    except (NotRepeated, EnvironmentLacks, SessionGone) as exc:
        return Void(word="environment", message=without_thread(exc))
    except BrowserProblem as exc:
        return Failure(error=exc.document())


def _held(effect: TrialEffect, reason: str) -> Outcome | None:
    return Void(word="environment", message=reason) if effect.kind == "browser" else None


@contextmanager
def _page(engine: Engine, bundle: Bundle, environment: Mapping[str, str]) -> Iterator[ProofPage]:
    """Yield a fresh context within the limits of a bundle.

    Raises:
        EnvironmentLacks: there is no browser, or the flow does not work in a fresh context.
    """
    limits = bundle.descriptor.policy.limits.get("browser", {})
    config = engine.config
    refusal = part_that_is_off(
        read_operation({"do": "address"}), BrowserLimits.of(limits), config.browser
    )
    if refusal:
        raise EnvironmentLacks(refusal)
    if BrowserLimits.of(limits).profile == "kept":
        raise EnvironmentLacks(
            "the flow works in the session's own tabs, whose logins a fresh page does not have"
        )
    with (
        SessionClient.open(engine.store, DEFAULT_SESSION) as client,
        ProofPage(
            client,
            limits,
            secret_of=lambda name: secret_value(name, config, environment),
            may_send=lambda _step, _what: False,
            finds_first=True,
        ) as page,
    ):
        yield page
