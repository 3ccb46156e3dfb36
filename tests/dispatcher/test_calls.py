"""Calls and the results of interpreting a sentence."""

from __future__ import annotations

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_dispatcher.calls import Call, Interpretation, Offer, Question


def test_a_call_is_read_back_from_its_document() -> None:
    """A call survives JSON, with or without parameters."""
    call = Call(flow="list-files", params={"path": "downloads"})
    assert Call.read(call.document()) == call
    assert Call.read({"flow": "list-files"}) == Call(flow="list-files")


@pytest.mark.parametrize(
    "value",
    [
        None,
        "list-files",
        {},
        {"flow": ""},
        {"flow": 3},
        {"flow": "a", "params": []},
        {"flow": "a", "policy": {}},
    ],
)
def test_a_value_of_another_form_is_no_call(value: object) -> None:
    """A call has a flow's name, perhaps parameters, and nothing else."""
    with pytest.raises(UsageError):
        Call.read(value)


def test_an_answer_names_one_choice() -> None:
    """A question accepts the ids of its choices, and lists them for any other answer."""
    reading = Interpretation(calls=(Call(flow="a"),), by="grammar", rule="a")
    question = Question(
        kind="collision",
        sentence="go",
        text="Which one?",
        choices=(Offer(id="1", label="a", interpretation=reading),),
    )
    assert question.choice(" 1 ").interpretation is reading
    with pytest.raises(UsageError, match="none of the choices: 1"):
        question.choice("2")
