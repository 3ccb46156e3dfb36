"""Constructions: sentence templates learned from translations that ran well. Does no I/O.

A part is a set of phrases, of which one must be in the sentence, or the place of a parameter.
"""

from __future__ import annotations

import re

# not hashlib: it loads OpenSSL, three milliseconds of each sentence's start
from _blake2 import blake2b
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from uncaged_bundles import shapes
from uncaged_bundles.records import dataclass, replace
from uncaged_engine.services.canonical import encode

from ..calls import Call

Capture = Literal["string", "number"]
MOST_PARTS = 40
_SPECIAL = re.compile(r"[|()<>$\-;{}\[\]\\/*]")
_EDGE = " \t\n\r.,;:!?…\"'“”‘’«»()[]。、！？"
_REFERENCES = frozenset(
    {
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "they",
        "them",
        "he",
        "him",
        "she",
        "her",
        "here",
        "there",
        "one",
        "ones",
        "same",
        "other",
        "last",
        "previous",
        "former",
        "latter",
    }
)
"""Words that stand for a thing named before; a value that begins with one is not learned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """Fixed text of a construction: alternatives, each in lower case."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """Place of a parameter in a construction."""

    param: str
    capture: Capture


Part = Phrases | Slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Construction:
    """A learned template. schema: digest of the flow's parameters when it was learned. thread: the
    thread that it was learned from. sentence: what the person wrote.
    """

    id: str
    flow: str
    parts: tuple[Part, ...]
    schema: str
    thread: str
    sentence: str
    learned_ms: int

    @property
    def pattern(self) -> str:
        """Return the construction as a sentence pattern."""
        return " ".join(_pattern_of(part) for part in self.parts)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the parameters that the sentence gives."""
        return tuple(part.param for part in self.parts if isinstance(part, Slot))

    def document(self) -> dict[str, object]:
        """Return the construction as JSON."""
        return {
            "constructionId": self.id,
            "flow": self.flow,
            "parts": [
                list(part.texts)
                if isinstance(part, Phrases)
                else {"param": part.param, "type": part.capture}
                for part in self.parts
            ],
            "call": {
                "flow": self.flow,
                "params": {
                    part.param: f"$({part.param})" for part in self.parts if isinstance(part, Slot)
                },
            },
            "pattern": self.pattern,
            "schema": self.schema,
            "threadId": self.thread,
            "sentence": self.sentence,
            "learnedMs": self.learned_ms,
        }

    @classmethod
    def read(cls, value: object) -> Construction:
        """Check one construction of a file.

        Raises:
            ShapeError: a key is missing or has another form.
        """
        top = ("construction",)
        fields = shapes.mapping(value, top)

        def text(key: str) -> str:
            return shapes.text(shapes.required(fields, key, top), (*top, key))

        parts = shapes.items(shapes.required(fields, "parts", top), (*top, "parts"))
        return cls(
            id=text("constructionId"),
            flow=text("flow"),
            parts=tuple(_read_part(part, (*top, "parts", i)) for i, part in enumerate(parts)),
            schema=text("schema"),
            thread=text("threadId"),
            sentence=text("sentence"),
            learned_ms=shapes.whole(shapes.required(fields, "learnedMs", top), (*top, "learnedMs")),
        )


def _read_part(value: object, path: shapes.Path) -> Part:
    if isinstance(value, list):
        texts = tuple(shapes.filled(text, (*path, i)) for i, text in enumerate(value))
        if not texts:
            raise shapes.ShapeError(path, "is empty; a part has at least one phrase")
        return Phrases(texts=texts)
    fields = shapes.mapping(value, path)
    capture: Any = shapes.one_of("string", "number")(fields.get("type"), (*path, "type"))
    return Slot(param=shapes.text(fields.get("param"), (*path, "param")), capture=capture)


def _pattern_of(part: Part) -> str:
    if isinstance(part, Slot):
        return f"$({part.param}:{'number' if part.capture == 'number' else 'wildcard'})"
    texts = [_SPECIAL.sub(r"\\\g<0>", text) for text in part.texts]
    return texts[0] if len(texts) == 1 else f"({' | '.join(texts)})"


def schema_digest(parameters: Mapping[str, object]) -> str:
    """Return the digest of a flow's parameters; another one silences its constructions."""
    return blake2b(encode(dict(parameters)).encode(), digest_size=12).hexdigest()


def schema_defaults(parameters: Mapping[str, object]) -> dict[str, object]:
    """Return the defaults of a flow's parameters."""
    declared = shapes.mapping(parameters.get("properties", {}), ("parameters", "properties"))
    return {
        name: schema["default"]
        for name, schema in declared.items()
        if isinstance(schema, Mapping) and "default" in schema
    }


def learn(
    sentence: str,
    call: Call,
    parameters: Mapping[str, object],
    *,
    thread: str,
    now_ms: int,
) -> Construction | None:
    """Return the construction of a translation that ran well; None if it cannot be generalised: a
    value is not in the sentence, or twice, or refers to something said before, or nothing fixed is
    left.
    """
    found: list[tuple[int, int, Slot]] = []
    defaults = schema_defaults(parameters)
    for name, value in call.params.items():
        if name in defaults and defaults[name] == value:
            continue  # the flow's own, whether the sentence has it or not
        place = _place_of(value, sentence)
        if place is None:
            return None
        capture: Capture = "number" if isinstance(value, (int, float)) else "string"
        found.append((*place, Slot(param=name, capture=capture)))
    found.sort(key=lambda one: one[0])
    parts: list[Part] = []
    end = 0
    for begin, until, slot in found:
        if begin < end:
            return None  # two values in one place
        fixed = _fixed(sentence[end:begin])
        if not fixed and parts:
            return None  # the border between the two values is unknown
        parts += [Phrases(texts=(fixed,)), slot] if fixed else [slot]
        end = until
    rest = _fixed(sentence[end:])
    parts += [Phrases(texts=(rest,))] if rest else []
    if len(parts) > MOST_PARTS or not any(isinstance(part, Phrases) for part in parts):
        return None
    digest = schema_digest(parameters)
    key = encode([call.flow, sentence, digest]).encode()
    return Construction(
        id=blake2b(key, digest_size=5).hexdigest(),
        flow=call.flow,
        parts=tuple(parts),
        schema=digest,
        thread=thread,
        sentence=sentence,
        learned_ms=now_ms,
    )


def _place_of(value: object, sentence: str) -> tuple[int, int] | None:
    """Return where a value is in a sentence, as whole words, exactly once."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    text = value.strip(_EDGE) if isinstance(value, str) else f"{value:g}"
    if not text or "${" in text or text.casefold().split()[0] in _REFERENCES:
        return None
    pattern = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)", re.IGNORECASE)
    places = [match.span() for match in pattern.finditer(sentence)]
    return places[0] if len(places) == 1 else None


def _fixed(text: str) -> str:
    """Return text between values as a phrase: words in lower case with single spaces."""
    words = (word.strip(_EDGE) for word in text.lower().split())
    return " ".join(word for word in words if word)


def merged(known: Sequence[Construction], new: Construction) -> list[Construction]:
    """Return the constructions with a new one among them.

    One that differs from it in a single phrase is generalised; those that are covered then go.
    """
    for place, one in enumerate(known):
        if covers(one, new):
            return list(known)
        joined = _joined(one, new)
        if joined is not None:
            rest = [*known[:place], *known[place + 1 :]]
            return [*(other for other in rest if not covers(joined, other)), joined]
    return [*(one for one in known if not covers(new, one)), new]


def _joined(old: Construction, new: Construction) -> Construction | None:
    """Return one construction for two that differ in a single phrase."""
    if not _is_alike(old, new):
        return None
    differing = [
        place
        for place, (a, b) in enumerate(zip(old.parts, new.parts, strict=True))
        if a != b and not _is_within(b, a)
    ]
    if len(differing) != 1:
        return None
    parts = [
        Phrases(texts=tuple(dict.fromkeys((*a.texts, *b.texts))))
        if isinstance(a, Phrases) and isinstance(b, Phrases)
        else a
        for a, b in zip(old.parts, new.parts, strict=True)
    ]
    return replace(old, parts=tuple(parts), learned_ms=new.learned_ms)


def covers(general: Construction, special: Construction) -> bool:
    """Tell whether one construction reads all sentences of another."""
    return _is_alike(general, special) and all(
        _is_within(b, a) for a, b in zip(general.parts, special.parts, strict=True)
    )


def _is_alike(one: Construction, other: Construction) -> bool:
    return (one.flow, one.schema, len(one.parts), *map(type, one.parts)) == (
        other.flow,
        other.schema,
        len(other.parts),
        *map(type, other.parts),
    )


def _is_within(special: Part, general: Part) -> bool:
    if isinstance(special, Phrases) and isinstance(general, Phrases):
        return set(special.texts) <= set(general.texts)
    return special == general
