"""The effect `browser`: one operation on a page of a browser session, or a question about the page.

``{"browser": {"do": "click", "target": […], …}}`` answers with the operation's value
(`uncaged_browser.operations`). Lookups and questions are made of several operations. The context of
a thread is opened with its first operation and is closed by the session after the thread's end.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from uncaged_bundles import shapes
from uncaged_bundles.errors import EnvironmentLacks, StorageError
from uncaged_bundles.records import replace
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void
from uncaged_engine.door.past import PastEffect
from uncaged_engine.services.blobs import BlobDirectory
from uncaged_engine.services.network import HostRules, WebProblem, read_target

from ..knowledge.index import knowledge_path
from ..lookup.performing import looked_up
from ..lookup.requests import FindPage, SearchWeb
from ..operations import Navigate, Open, Operation, read_operation
from ..problems import BrowserProblem
from ..questions.requests import PageQuestion
from ..secrets import BoundSecrets
from ..session.address import DEFAULT_SESSION
from ..session.client import SessionClient, SessionGone, kept_client
from ..session.messages import KEPT, ContextSpec, MissingContext
from .checkpoints import LostPage, fields_of, open_or_restore, save_checkpoint
from .healing import Perform, perform_or_heal
from .limits import BrowserLimits
from .parts import part_that_is_off
from .permission import question_refusal
from .secrets import EffectSecrets
from .table import EFFECTS, operation_named

__all__ = ["BrowserCall", "BrowserHandler"]

if TYPE_CHECKING:
    from ..goal.tools import BrowserTools

PICTURE_S = 5.0
GONE = "the browser session ended during the operation"
NOT_PRIVATE = (
    'the session\'s own tabs reach this machine and its network; add "private": true to "profile": "kept"'
    " and add the bundle again"
)


class BrowserHandler(Handler):
    kind = "browser"
    limits = BrowserLimits
    decided_limits = frozenset({"profile"})

    def rule(self, body: object, bundle: Bundle) -> Rule:
        """Return ``repeat`` for an operation that only reads; a person decides about the others."""
        del bundle
        operation = operation_named(body)
        return "repeat" if operation is not None and operation.effect == "reads" else "ask"

    def words(self, body: object) -> str:
        from ..recording.summary import summary_of  # for pages that show threads

        return summary_of(body)

    def tools(self, options: Mapping[str, object], context: EffectContext) -> BrowserTools:
        from ..goal.tools import BrowserTools  # few roles have a browser

        return BrowserTools(options, context)

    def past_refusal(self, past: PastEffect) -> str | None:
        try:
            operation = read_operation(past.body, table=EFFECTS)
        except shapes.ShapeError:
            return None
        limits = BrowserLimits.of(past.limits)
        if (forbidden := _forbidden_profile(limits)) is not None:
            return forbidden
        if isinstance(operation, PageQuestion):
            return question_refusal(operation, past.bundle.descriptor.policy.limits)
        if isinstance(operation, Open | Navigate):
            try:
                HostRules.of(self.kind, past.limits).check(read_target(operation.url))
            except WebProblem as exc:
                return f"browser: {operation.do} {operation.url}: {exc}"
        return None

    def perform(self, body: object, context: EffectContext) -> Outcome:
        try:
            operation = read_operation(body, table=EFFECTS)
        except shapes.ShapeError as exc:
            return Failure.of("effect", str(exc))
        limits = BrowserLimits.of(context.bundle.descriptor.policy.limits.get(self.kind, {}))
        if (forbidden := _forbidden_profile(limits)) is not None:
            return Failure.of("policy", forbidden)
        refusal = part_that_is_off(operation, limits, context.config.browser)
        if refusal:
            return Failure.of("policy", f"browser: {refusal}")
        if isinstance(operation, PageQuestion):
            from .questions import answer_question  # few flows ask a model

            return answer_question(limits, operation, context)
        call = BrowserCall(limits, operation, cast("Mapping[str, object]", body), context)
        with kept_client(context.store, DEFAULT_SESSION) as client:
            return call.perform(client)


class BrowserCall:
    """One operation in the context of its thread."""

    def __init__(
        self,
        limits: BrowserLimits,
        operation: Operation,
        body: Mapping[str, object],
        context: EffectContext,
        *,
        recorded: bool = False,
    ) -> None:
        """Args: recorded: what is done in the context is noted for a recording."""
        self._spec = replace(_context_of(limits, context), recorded=recorded)
        self._operation = operation
        self._body = body
        self._context = context
        self._secrets = EffectSecrets(limits, context)

    def perform(self, client: SessionClient) -> Outcome:
        """Perform it, and return its outcome without secrets."""
        operation, context, name = self._operation, self._context, self._spec.name
        begun = False
        with context.cancel.on_request(client.cut):
            try:
                secrets = self._secrets.for_operation(operation)
                begun = True
                try:
                    value = self._value(client, secrets)
                except MissingContext:
                    begun = False
                    open_or_restore(
                        client, self._spec, context, lambda body: self._again(client, body)
                    )
                    begun = True
                    value = self._value(client, secrets)
                checkpoint = (
                    None
                    if name == KEPT
                    else save_checkpoint(client, name, operation, value, context)
                )
            except BrowserProblem as exc:
                error = {**exc.document(), **(self._picture(client) if begun else {})}
                return Failure(error=self._secrets.redact(error))
            except LostPage as exc:
                return Void(word="environment", message=str(exc), begun=False, doubt=True)
            except EnvironmentLacks as exc:
                exc.begun = begun
                raise
            except SessionGone:
                if context.cancel.requested:
                    return Void(word="killed", message=f"killed during {operation.do}", begun=begun)
                raise EnvironmentLacks(
                    GONE, remedy="look at what the page shows", begun=begun
                ) from None
            picture = self._picture(client)
        outcome = self._secrets.redact(value)
        fields = {"outcome": outcome, **fields_of(operation, checkpoint), **picture}
        return Answer(fields=fields)

    def _value(self, client: SessionClient, secrets: BoundSecrets) -> Any:
        """Return the session's answer, or that of the operation on a healed target."""
        perform = self._performing(client, secrets)
        if isinstance(self._operation, FindPage | SearchWeb):
            return self._looked_up(self._operation, perform)
        return perform_or_heal(self._operation, self._body, self._context, perform)

    def _again(self, client: SessionClient, body: Mapping[str, object]) -> Any:
        """Perform an operation of the journal once more; return the session's answer."""
        operation = read_operation(body, table=EFFECTS)
        perform = self._performing(client, self._secrets.for_operation(operation))
        if isinstance(operation, FindPage | SearchWeb):
            return self._looked_up(operation, perform)
        return perform(body, operation.timeout_s)

    def _performing(self, client: SessionClient, secrets: BoundSecrets) -> Perform:
        """Return what performs an operation in the context of the thread."""
        name, scope = self._spec.name, self._spec.scope

        def perform(body: Mapping[str, object], timeout_s: float) -> Any:
            return client.perform(name, body, timeout_s, secrets, scope)

        return perform

    def _looked_up(self, operation: FindPage | SearchWeb, perform: Perform) -> dict[str, Any]:
        return looked_up(
            operation,
            self._context.config.browser,
            # a thread with a context of its own does not learn what the person visited
            knowledge_path(self._context.store) if self._spec.name == KEPT else None,
            perform,
        )

    def _picture(self, client: SessionClient) -> dict[str, str]:
        """Keep a picture of the page if the thread has screenshots; a picture that cannot be made
        or kept is reported, and ends nothing.
        """
        if not self._context.screenshots or self._operation.effect == "reads":
            return {}
        body = {"do": "screenshot", "timeout_s": PICTURE_S}
        try:
            reply = client.perform(self._spec.name, body, PICTURE_S, scope=self._spec.scope)
            picture = base64.b64decode(reply["png"])
            return {"screenshot": BlobDirectory(self._context.store.blobs).put(picture)}
        except (BrowserProblem, StorageError, SessionGone) as exc:
            return {"screenshotProblem": str(exc)}


def _forbidden_profile(limits: BrowserLimits) -> str | None:
    return f"browser: {NOT_PRIVATE}" if limits.profile == "kept" and not limits.private else None


def _context_of(limits: BrowserLimits, context: EffectContext) -> ContextSpec:
    return ContextSpec(
        name=KEPT if limits.profile == "kept" else str(context.thread_id),
        hosts=None if limits.hosts is None else tuple(limits.hosts),
        private=limits.private,
        patterns=tuple(limits.url_patterns),
    )
