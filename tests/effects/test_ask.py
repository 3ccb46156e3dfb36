"""The effect that asks a person."""

from __future__ import annotations

from dataclasses import replace

import pytest
from testbed.roles import EffectHarness, role_bundle
from uncaged_bundles.storage.store import Store
from uncaged_effects.ask import AskHandler
from uncaged_engine.door.outcomes import Answer, Failure, Wait


@pytest.fixture
def harness(store: Store) -> EffectHarness:
    return EffectHarness(
        store=store, bundle=role_bundle(policy={"ask": {}}), start={}, environment={}
    )


def test_a_question_waits_and_its_answer_is_the_outcome(harness: EffectHarness) -> None:
    """The possible answers are known beforehand; choices are a schema, too."""
    handler, context = AskHandler(), harness.context(1)
    assert handler.perform({"question": "Why?"}, context) == Wait(details={"question": "Why?"})
    chosen = {"question": "Which?", "choices": ["a", "b"]}
    assert handler.perform(chosen, context) == Wait(
        details={"question": "Which?", "schema": {"enum": ["a", "b"]}}
    )
    for answer in ("a", "", 0, False):
        assert handler.perform(chosen, replace(context, answer=answer)) == Answer(
            fields={"outcome": answer}
        )


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("Why?", "ask: must be a mapping"),
        ({"question": 1}, "ask.question: must be text"),
        ({"question": "Why?", "answers": []}, "ask.answers: unknown key"),
        ({"question": "Why?", "choices": "ab"}, "ask.choices: must be a list"),
        ({"question": "Why?", "choices": []}, "ask.choices: is empty"),
        ({"question": "Why?", "schema": True}, "ask.schema: must be a mapping"),
        ({"question": "Why?", "choices": [1], "schema": {}}, "ask: give choices or a schema"),
    ],
)
def test_a_bad_body_is_a_failure(body: object, words: str, harness: EffectHarness) -> None:
    """A bad body fails with a message for the bundle's author; no question is shown."""
    outcome = AskHandler().perform(body, harness.context(1))
    assert isinstance(outcome, Failure)
    assert words in str(outcome.error["message"])


def test_an_answer_to_a_body_with_choices_and_schema_counts(harness: EffectHarness) -> None:
    """A thread that already waits with both, from an older version, is answered by the schema."""
    body = {"question": "Why?", "choices": [1], "schema": {"type": "string"}}
    assert AskHandler().outcome_schema(body) == {"type": "string"}
    answered = replace(harness.context(1), answer="x")
    assert AskHandler().perform(body, answered) == Answer(fields={"outcome": "x"})
