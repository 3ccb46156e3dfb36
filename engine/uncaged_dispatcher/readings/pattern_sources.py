"""Proposals of sentence patterns for a flow: from sentences with their calls, and from the flow's
own words. Does no I/O; nothing here is checked against the rules of a store.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Literal

from uncaged_bundles import shapes
from uncaged_bundles.records import dataclass

from ..calls import Call
from ..constructions.construction import learn

Origin = Literal["example", "translation", "construction", "description", "name", "model"]
SAMPLE_TEXT = "something"
SAMPLE_NUMBER = 7
MOST_WORDS = 8
_ARTICLES = frozenset(("a", "an", "the"))
_CLAUSE = re.compile(r"[.,;:(]")
_PLAIN = re.compile(r"[a-z]+(?:-[a-z]+)*(?: [a-z]+(?:-[a-z]+)*)*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+")
_TYPED = {"string": "wildcard", "integer": "number", "number": "number"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedSentence:
    """A sentence with the call that it means."""

    sentence: str
    call: Call
    origin: Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternProposal:
    """A pattern with the sentence that it is made of. params: those that it must read there; None
    for a construction's, which reads its own sentence.
    """

    pattern: str
    sentence: str
    params: Mapping[str, object] | None
    origin: Origin


def from_sentences(
    sentences: list[TranslatedSentence], parameters: Mapping[str, object]
) -> Iterator[PatternProposal]:
    """Yield a proposal for each sentence that has the values of its call."""
    for one in sentences:
        learned = learn(one.sentence, one.call, parameters, thread="", now_ms=0)
        if learned is not None:
            params = {name: one.call.params[name] for name in learned.parameters}
            yield PatternProposal(
                pattern=learned.pattern, sentence=one.sentence, params=params, origin=one.origin
            )


def from_words(
    flow: str, description: str, parameters: Mapping[str, object]
) -> Iterator[PatternProposal]:
    """Yield a proposal from the first clause of a flow's description, and one from its name, with
    places for the required parameters.
    """
    properties = parameters.get("properties")
    declared: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
    names = shapes.texts(parameters.get("required", []), ("required",))
    required = {name: _typed(declared.get(name)) for name in names}
    if None in required.values():
        return
    clause = _imperative(_CLAUSE.split(description, maxsplit=1)[0].strip().lower())
    origins: tuple[tuple[Origin, str], ...] = (
        ("description", clause),
        ("name", flow.replace("-", " ")),
    )
    for origin, words in origins:
        if _PLAIN.fullmatch(words) and len(words.split()) <= MOST_WORDS:
            proposal = _with_places(words.split(), {k: str(v) for k, v in required.items()}, origin)
            if proposal is not None:
                yield proposal


def _typed(schema: object) -> str | None:
    """Return the type of a capture for a parameter, None if a sentence cannot hold its values."""
    kind = schema.get("type", "string") if isinstance(schema, Mapping) else "string"
    return _TYPED.get(kind) if isinstance(kind, str) else None


def _imperative(clause: str) -> str:
    """Return a clause with its verb in the imperative: ``lists files`` is ``list files``."""
    verb, space, rest = clause.partition(" ")
    if verb.endswith("ies") and len(verb) > 4:
        verb = f"{verb[:-3]}y"
    elif verb.endswith(("sses", "shes", "ches", "xes", "zes")):
        verb = verb[:-2]
    elif verb.endswith("s") and not verb.endswith("ss"):
        verb = verb[:-1]
    return f"{verb}{space}{rest}"


def _with_places(
    words: list[str], required: Mapping[str, str], origin: Origin
) -> PatternProposal | None:
    """Return a pattern of words with a place for each required parameter: at the word that is its
    name, else at the end, after its name if there are several. None if two places would touch.
    """
    parts: list[tuple[str, str]] = []  # the pattern's part, and the same in a sentence
    params: dict[str, object] = {}
    missing = dict(required)

    def place(name: str) -> None:
        kind = missing.pop(name)
        params[name] = SAMPLE_NUMBER if kind == "number" else SAMPLE_TEXT
        parts.append((f"$({name}:{kind})", str(params[name])))

    for word in words:
        if word in missing:
            place(word)
        elif word in _ARTICLES:
            parts.append(("(a | an | the)?", word))
        else:
            parts.append((word.replace("-", r"\-"), word))
    several = len(missing) > 1
    for name in list(missing):
        label = " ".join(_CAMEL.sub(" ", name).lower().split())
        if several and _PLAIN.fullmatch(label):
            parts.append((label, label))
        place(name)
    captures = [part.startswith("$") for part, _ in parts]
    if any(one and other for one, other in pairwise(captures)):
        return None
    pattern, sentence = (" ".join(texts) for texts in zip(*parts, strict=True))
    return PatternProposal(pattern=pattern, sentence=sentence, params=params, origin=origin)
