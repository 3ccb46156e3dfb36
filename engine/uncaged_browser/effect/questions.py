"""Questions of a flow about its page, answered by a model that the policy allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uncaged_bundles.errors import EnvironmentLacks, UsageError
from uncaged_engine.door.effects import EffectContext
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void
from uncaged_models.choice import choose, choose_name
from uncaged_models.errors import ModelFailed
from uncaged_models.questions import ModelData, ModelQuestion, ModelSession
from uncaged_models.retries import ConversationCancelled

from ..operations import read_operation
from ..problems import BrowserProblem
from ..questions.answering import PageQuestioner
from ..questions.requests import PageQuestion
from ..questions.selectors import KeptSelectors, selectors_path
from ..session.address import DEFAULT_SESSION
from ..session.client import kept_client
from .handler import BrowserCall
from .limits import BrowserLimits
from .permission import models_of, question_refusal

__all__ = ["answer_question"]


def answer_question(
    limits: BrowserLimits, question: PageQuestion, context: EffectContext
) -> Outcome:
    """Answer a question; its outcome has the usage of the model, if one was asked.

    Raises:
        EnvironmentLacks: there is no model, or no browser.
    """
    policy = context.bundle.descriptor.policy.limits
    refused = question_refusal(question, policy)
    if refused is not None:
        return Failure.of("policy", refused)
    asking = FlowQuestion(limits, question.model, models_of(policy), context)
    questioner = PageQuestioner(
        asking.perform, asking.ask, KeptSelectors(selectors_path(context.store))
    )
    try:
        value = questioner.answer(question)
    except StoppedError as exc:
        return exc.outcome
    except BrowserProblem as exc:
        return Failure(error={**exc.document(), **asking.usage})
    except ModelFailed as exc:
        return Failure.of(exc.kind, str(exc), **asking.usage)
    except ConversationCancelled:
        return Void(word="killed", message=f"killed while a model answered {question.do}")
    return Answer(fields={"outcome": value, **asking.usage})


class StoppedError(Exception):
    """An operation ended in an outcome that the question does not change."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__("an operation of the question was stopped")
        self.outcome = outcome


class FlowQuestion:
    """The operations and the model of one question."""

    def __init__(
        self,
        limits: BrowserLimits,
        model: str | None,
        allowed: list[str],
        context: EffectContext,
    ) -> None:
        self._limits = limits
        self._model = model
        self._allowed = allowed
        self._context = context
        self._session: ModelSession | None = None

    @property
    def usage(self) -> dict[str, Mapping[str, object]]:
        """Return the usage of the model as a field of the outcome; none if it was not asked."""
        used = None if self._session is None else self._session.usage
        return {"usage": used} if used else {}

    def perform(self, body: Mapping[str, object]) -> Any:
        """Perform an operation in the context of the thread.

        Raises:
            BrowserProblem: it failed. StoppedError: the thread was killed, or its page is gone.
        """
        call = BrowserCall(self._limits, read_operation(body), body, self._context)
        with kept_client(self._context.store, DEFAULT_SESSION) as client:
            outcome = call.perform(client)
        if isinstance(outcome, Failure):
            raise BrowserProblem.of(outcome.error)
        if not isinstance(outcome, Answer):
            raise StoppedError(outcome)
        return outcome.fields["outcome"]

    def ask(self, question: ModelQuestion) -> ModelData:
        """Ask the chosen model."""
        context = self._context
        name = choose_name(self._model, self._allowed, context.config, context.environment)
        try:
            chosen = choose(name, context.config, context.environment)
        except UsageError as exc:  # a person corrects config.yaml and resumes
            raise EnvironmentLacks(f"models.{name}: {exc}") from exc
        self._session = ModelSession(
            chosen,
            context.environment,
            context.cancel,
            record=context.record_attempt,
            progress=lambda fields: context.progress({"model": name, **fields}),
            observer=context.observer,
        )
        return self._session.ask(question)
