"""A person's answers, checked against what was asked."""

from __future__ import annotations

from typing import Any

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_engine.threads.answering import check_answer

STATUS = {"enum": ["approved", "rejected"]}
TEXT = {"type": "string", "minLength": 3}
LIST = {"type": "array", "items": {"type": "string"}}


def asked(required: list[str], **properties: object) -> list[dict[str, object]]:
    fields = {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    return [
        {"seq": 1, "intent": {"role": {"name": "someone"}}},
        {"control": "wait", "seq": 1, "question": "?", "fields": fields},
    ]


@pytest.mark.parametrize(
    ("required", "properties", "text", "data"),
    [
        (["status"], {"status": STATUS, "issues": LIST}, "approved", {"status": "approved"}),
        (["status"], {"status": STATUS, "reason": TEXT}, "  rejected\n", {"status": "rejected"}),
        (["city"], {"city": TEXT}, "Bern, or so", {"city": "Bern, or so"}),
        (["city"], {"city": TEXT, "status": STATUS}, "Bern", {"city": "Bern"}),
        (["status"], {"status": {"const": "approved"}}, "approved", {"status": "approved"}),
    ],
)
def test_a_lone_word_and_a_text_stand_for_the_one_field_that_they_can_be(
    required: list[str], properties: dict[str, Any], text: str, data: object
) -> None:
    """A lone enum word, or a text where one field is text, is accepted as that field."""
    assert check_answer(asked(required, **properties), text) == data


@pytest.mark.parametrize(
    ("required", "properties", "text"),
    [
        (["status"], {"status": STATUS}, "perhaps"),
        (["status", "reason"], {"status": STATUS, "reason": TEXT}, "approved"),
        (["status"], {"status": STATUS, "reason": TEXT}, "because"),
        (["a"], {"a": TEXT, "b": TEXT}, "which one"),
        (["a"], {"a": STATUS, "b": STATUS}, "approved"),
        (["city"], {"city": TEXT}, "no"),
        (["city"], {"city": TEXT}, "   "),
        (["city"], {"city": TEXT}, '{"town": "Bern"}'),
        (["city"], {"city": TEXT}, 'Here:\n```json\n{"town": "Bern"}\n```'),
        (["n"], {"n": {"type": "integer"}}, "three"),
    ],
)
def test_a_text_that_fits_no_field_or_several_is_refused(
    required: list[str], properties: dict[str, Any], text: str
) -> None:
    """An answer that lacks a required field, or that two fields would accept, is refused."""
    with pytest.raises(UsageError, match="the answer does not fit: "):
        check_answer(asked(required, **properties), text)


def test_a_text_with_a_block_stays_as_it_was_said() -> None:
    """An answer in the form of an agent's is written down whole."""
    text = 'Two.\n\n```json\n{"status": "approved"}\n```'
    assert check_answer(asked(["status"], status=STATUS), text) == text
