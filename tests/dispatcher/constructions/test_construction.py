"""Constructions: what is learned from a translation, what is not, and how they are merged."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uncaged_bundles.shapes import ShapeError
from uncaged_dispatcher.calls import Call
from uncaged_dispatcher.constructions.construction import (
    Construction,
    Phrases,
    Slot,
    covers,
    learn,
    merged,
)

SCHEMA = {
    "type": "object",
    "properties": {
        "song": {"type": "string"},
        "artist": {"type": "string"},
        "volume": {"type": "number"},
        "loop": {"type": "boolean", "default": False},
    },
}


def learned(sentence: str, **params: object) -> Construction | None:
    call = Call(flow="play", params=params)
    return learn(sentence, call, SCHEMA, thread="T", now_ms=7)


def one(sentence: str, **params: object) -> Construction:
    found = learned(sentence, **params)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("sentence", "params", "pattern"),
    [
        (
            "Play Stand By Me by Ben!",
            {"song": "stand by me", "artist": "Ben"},
            "play $(song:wildcard) by $(artist:wildcard)",
        ),
        ("volume 7.5, please", {"volume": 7.5}, "volume $(volume:number) please"),
        ("set it to 5", {"volume": 5}, "set it to $(volume:number)"),
        ("stop the music", {}, "stop the music"),
        ("stop the music", {"loop": False}, "stop the music"),
        ("rock (live) - now: play “X”", {"song": "X"}, r"rock live \- now play $(song:wildcard)"),
        ("a|b <c> \\d; $(x) play Y", {"song": "Y"}, None),
    ],
)
def test_the_parts_are_fixed_phrases_and_places_of_parameters(
    sentence: str, params: Mapping[str, object], pattern: str | None
) -> None:
    """A value becomes a capture, what is between is fixed, punctuation at words' edges is left
    out, and signs of the pattern language are escaped.
    """
    found = one(sentence, **params)
    if pattern is not None:
        assert found.pattern == pattern
    else:
        assert [part for part in found.parts if isinstance(part, Slot)] == [
            Slot(param="song", capture="string")
        ]
        assert r"a\|b" in found.pattern


@pytest.mark.parametrize(
    ("sentence", "params"),
    [
        ("play something by Ben", {"song": "Yesterday", "artist": "Ben"}),
        ("play it again", {"song": "it"}),
        ("play that song", {"song": "that song"}),
        ("play ${entity-0}", {"song": "${entity-0}"}),
        ("play Ben by Ben", {"song": "Ben", "artist": "Ben"}),
        ("play Ben", {"song": "Ben", "artist": "Ben"}),
        ("play Ben King", {"song": "Ben", "artist": "King"}),
        ("turn it on", {"loop": True}),
        ("play tent", {"song": "ten"}),
        ("Yesterday", {"song": "Yesterday"}),
        ("play", {"song": ""}),
        ("play [1]", {"song": [1]}),
    ],
)
def test_what_cannot_be_generalised_is_not_learned(
    sentence: str, params: Mapping[str, object]
) -> None:
    """A value that is not in the sentence, refers to something, or has no clear place; a sentence
    without a fixed word.
    """
    assert learned(sentence, **params) is None


def test_two_that_differ_in_one_phrase_become_one() -> None:
    """Phrase sets are generalised, and a third sentence that is covered adds nothing."""
    known = merged([], one("play Yes", song="Yes"))
    known = merged(known, one("put on Yes", song="Yes"))
    assert [construction.pattern for construction in known] == ["(play | put on) $(song:wildcard)"]
    assert merged(known, one("put on Abba", song="Abba")) == known


def test_a_construction_that_is_covered_by_a_merged_one_goes() -> None:
    """A generalised construction replaces those whose sentences it reads."""
    known = [one("play Yes now", song="Yes"), one("start Yes soon", song="Yes")]
    known = merged(known, one("start Yes now", song="Yes"))
    known = merged(known, one("play Yes soon", song="Yes"))
    assert len(known) == 2
    joined = merged(known, one("start Abba soon", song="Abba"))
    assert len(joined) <= 2


def test_flows_and_schemas_are_never_mixed() -> None:
    """Constructions of another flow or of other parameters stay apart."""
    first = one("play Yes", song="Yes")
    other = learn(
        "put on Yes", Call(flow="stop", params={"song": "Yes"}), SCHEMA, thread="T", now_ms=7
    )
    changed = learn(
        "put on Yes",
        Call(flow="play", params={"song": "Yes"}),
        {"properties": {"song": {"type": "string", "minLength": 2}}},
        thread="T",
        now_ms=7,
    )
    assert other is not None
    assert changed is not None
    assert len(merged(merged([first], other), changed)) == 3


TEXT = st.text(alphabet="ab|()<>$-;{}[]\\/*.,' é語", min_size=1, max_size=30)


@given(before=TEXT, value=TEXT, after=TEXT)
def test_any_sentence_is_learned_or_refused(before: str, value: str, after: str) -> None:
    """A construction of any text survives its file's form and covers itself."""
    found = learned(f"{before} {value} {after}", song=value)
    if found is not None:
        assert Construction.read(found.document()) == found
        assert covers(found, found)
        assert any(isinstance(part, Phrases) for part in found.parts)


@pytest.mark.parametrize("damage", ["parts", "constructionId", "schema", "learnedMs"])
def test_a_construction_of_another_form_is_refused(damage: str) -> None:
    """A missing or wrong key is named."""
    fields = one("play Yes", song="Yes").document()
    with pytest.raises(ShapeError, match=damage):
        Construction.read({**fields, damage: None})
