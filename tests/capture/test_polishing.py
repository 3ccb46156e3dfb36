"""Wording of a captured flow by a model: what it is asked, and what of its answer is used."""

from __future__ import annotations

import json
from typing import Any

import pytest
from uncaged_capture.polishing import Polishing, polished, question_of
from uncaged_capture.values import Parameter
from uncaged_capture.wording import Wording, worded, wording_of

GENRE = Parameter(name="genre", value="blues", type="text")
KEY = Parameter(name="key", value="sk-abcdefghijklmnopqrst", type="text", secret="TOKEN")
KEPT = "the-kept-value-of-a-secret"
WORDING = wording_of("play-songs", "play songs of blues", (GENRE,))
GOOD = {
    "pattern": "put on $(genre:wildcard)",
    "sentence": "put on jazz",
    "values": {"genre": "jazz"},
}


def asked(answer: dict[str, Any], **more: Any) -> tuple[Wording, str, tuple[Any, ...]]:
    """Return the wording after an answer, the refusals in one line, and the untried examples."""
    whole = {"name": "play-genre", "description": "Plays songs.", "patterns": [GOOD], **answer}
    rules: dict[str, Any] = {
        "has_name": False,
        "is_taken": lambda name: name == "charts",
        "secrets": {KEPT: "SHOP"},
        "misread": lambda words: "it reads too much" if words.pattern == "$(genre)" else "",
        **more,
    }
    found = polished(WORDING, whole, {"genre": "blues"}, Polishing(**rules))
    return found.wording, "; ".join(found.refused), found.untried


def test_an_answer_changes_the_wording_alone() -> None:
    """The pattern of the prompt stays, and a recipe has all its other keys as before."""
    wording, refused, untried = asked({})
    assert (wording.name, wording.description, refused) == ("play-genre", "Plays songs.", "")
    assert wording.patterns == ("play songs of $(genre:wildcard)", "put on $(genre:wildcard)")
    assert wording.examples == ({"sentence": "play songs of blues"},)
    [example] = untried
    assert example.values == {"genre": "jazz"}
    assert example.example == {"sentence": "put on jazz", "params": {"genre": "jazz"}}
    recipe = {"steps": [1], "policy": {"flow": {}}, "parameters": []}
    changed = worded(recipe, wording)
    assert {key: changed[key] for key in recipe} == recipe


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"name": "charts"}, "the name 'charts': a flow has it already"),
        ({"name": "run"}, "it is no name of a new flow"),
        ({"name": "../../x"}, "it is no name of a new flow"),
        ({"description": "x" * 10_000_000}, "it has 10,000,000 characters"),
        ({"patterns": [{**GOOD, "pattern": "put \x1b[2J on $(genre)"}]}, "control characters"),
        ({"description": f"uses {KEPT}"}, "it has a secret"),
        ({"patterns": [{**GOOD, "pattern": "$(genre)"}]}, "it reads too much"),
        ({"patterns": [{**GOOD, "pattern": "x " * 5_000_000}]}, "at most 300"),
        ({"patterns": [{**GOOD, "sentence": "use token=abcdefgh1"}]}, "it has a secret"),
        ({"patterns": [{**GOOD, "values": {"genre": f"x {KEPT}"}}]}, "it has a secret"),
        ({"patterns": [{**GOOD, "values": {"gender": "jazz"}}]}, "no parameter 'gender'"),
    ],
)
def test_what_does_not_hold_is_not_used(answer: dict[str, Any], why: str) -> None:
    """The rest of the answer is, and the refusal is short and has no secret."""
    wording, refused, _ = asked(answer)
    assert why in refused
    assert len(refused) < 300
    assert KEPT not in f"{wording} {refused}"
    key = next(iter(answer))
    assert getattr(wording, key) == getattr(WORDING, key)


def test_at_most_five_patterns_are_used_and_a_chosen_name_stays() -> None:
    """An example with the recorded values is proved; the others are not, and no part of it."""
    many = [{**GOOD, "pattern": f"put on {number} $(genre)"} for number in range(1000)]
    same = {**GOOD, "values": {"genre": "blues"}}
    wording, refused, untried = asked({"patterns": [same, *many]}, has_name=True)
    assert len(wording.patterns) == 6
    assert wording.name == "play-songs"
    assert "another one was chosen" in refused
    assert wording.examples[1:] == ({"sentence": "put on jazz", "params": {"genre": "blues"}},)
    assert len(untried) == 4


def test_the_question_has_no_secret() -> None:
    """Known ones and those of the usual forms are replaced in the prompt, steps and values."""
    steps = [f"curl -H 'Authorization: Bearer {KEY.value}' x", f"echo {KEPT}"]
    question = question_of(
        "x", f"send it with {KEY.value} and {KEPT}", steps, (GENRE, KEY), {KEPT: "SHOP"}
    )
    text = question.prompt + question.system + json.dumps(question.schema)
    assert KEY.value not in text
    assert KEPT not in text
    assert text.count("secret:SHOP") == 2
    values = question.schema["properties"]["patterns"]["items"]["properties"]["values"]
    assert list(values["properties"]) == ["genre"]
    assert "steps" not in question.schema["properties"]
