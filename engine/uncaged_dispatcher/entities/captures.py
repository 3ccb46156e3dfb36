"""Text of a free capture as the person wrote it, with punctuation that belongs to it and without
quotes around it.

The grammar trims punctuation at both ends of a capture, so that `/etc` and `*.pdf` lose their first
characters, and the quotes around a text are gone before they are seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..grammar.readings import Entity
from ..grammar.sentences import SEPARATOR, SPACE, Sentence

TEXT = "Text"
"""Type of a free capture in compiled rules of the index: it has no reader, so that a reading has
the place of its text, and ranks as a free capture does.
"""
_QUOTES = {
    '"': '"',
    "'": "'",
    "`": "`",
    "\N{LEFT DOUBLE QUOTATION MARK}": "\N{RIGHT DOUBLE QUOTATION MARK}",
    "\N{LEFT SINGLE QUOTATION MARK}": "\N{RIGHT SINGLE QUOTATION MARK}",
    "\N{DOUBLE LOW-9 QUOTATION MARK}": "\N{LEFT DOUBLE QUOTATION MARK}",
    "\N{LEFT-POINTING DOUBLE ANGLE QUOTATION MARK}": "\N{RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK}",
    "\N{LEFT CORNER BRACKET}": "\N{RIGHT CORNER BRACKET}",
    "\N{LEFT WHITE CORNER BRACKET}": "\N{RIGHT WHITE CORNER BRACKET}",
}
_ANY_QUOTE = frozenset((*_QUOTES, *_QUOTES.values()))
_ENDS_SENTENCE = frozenset(".,;:!?\u2026\u3001\u3002\uff0c\uff01\uff1f\u061f\u060c\u0964")


def restored(value: object, sentence: Sentence, entities: Sequence[Entity]) -> object:
    """Return a reading's value with each captured text as the person wrote it."""
    texts = {
        entity.text: whole_text(sentence, entity.start, entity.start + len(entity.text))
        for entity in entities
        if entity.type == TEXT or entity.value == entity.text
    }
    return _replaced(value, texts) if any(old != new for old, new in texts.items()) else value


def whole_text(sentence: Sentence, start: int, end: int) -> str:
    """Return the text at *start* to *end* with the punctuation that touches it, up to a space."""
    text, kinds = sentence.text, sentence.kinds
    first, last = start, end
    while first > 0 and kinds[first - 1] == SEPARATOR and text[first - 1] not in SPACE:
        first -= 1
    if first > 0 and text[first - 1] not in SPACE:
        first = start  # it ends the word before
    while last < len(text) and kinds[last] == SEPARATOR and text[last] not in SPACE:
        last += 1
    if last < len(text) and text[last] not in SPACE:
        last = end
    while last > end and text[last - 1] in _ENDS_SENTENCE:
        last -= 1
    return _without_quotes(text[first:last], text[start:end])


def _without_quotes(text: str, trimmed: str) -> str:
    """Return a text without the quotes around it; without a quote that has no other half."""
    while len(text) > 2 and text[-1] == _QUOTES.get(text[0]):
        text = text[1:-1]
    if text[0] in _ANY_QUOTE and text.count(text[0]) == 1:
        return trimmed
    if text[-1] in _ANY_QUOTE and text.count(text[-1]) == 1:
        return trimmed
    return text


def _replaced(value: object, texts: Mapping[str, str]) -> object:
    match value:
        case str():
            return texts.get(value, value)
        case list():
            return [_replaced(item, texts) for item in value]
        case dict():
            return {key: _replaced(item, texts) for key, item in value.items()}
        case _:
            return value
