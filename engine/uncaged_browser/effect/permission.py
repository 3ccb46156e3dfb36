"""What a policy says about a question that a model answers."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.limits import LlmLimits

from ..questions.requests import PageQuestion

__all__ = ["models_of", "question_refusal"]

NOT_ALLOWED = (
    'browser: {} sends the page view to a model, which the policy does not allow; add "llm": {{}} to it and add the'
    " bundle again"
)


def question_refusal(
    question: PageQuestion, policy: Mapping[str, Mapping[str, object]]
) -> str | None:
    """Return why the policy refuses a question; None if it does not."""
    if "llm" not in policy:
        return NOT_ALLOWED.format(question.do)
    allowed = models_of(policy)
    if question.model is not None and allowed and question.model not in allowed:
        names = ", ".join(allowed)
        return f"browser: the policy allows the models {names}, not {question.model!r}"
    return None


def models_of(policy: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Return the models that the policy names; none named: all are allowed."""
    return list(LlmLimits.of(policy["llm"]).models or ())
