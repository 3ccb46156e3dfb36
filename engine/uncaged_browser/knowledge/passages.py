"""Passages: a page's text in parts that are short enough to be cited."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["passages_of", "query_of", "spaced", "telling_words", "words_of"]

PASSAGE_CHARACTERS = 700
"""A passage ends at the first line's end after so many characters, or at a sentence's."""
MAX_PASSAGES = 2_000
MAX_WORDS = 40
SENTENCE = re.compile(r"(?<=[.!?…。！？])\s+")
WORD = re.compile(r"\w+")
UNSPACED = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f])")
"""Characters of scripts that put no spaces between words: each is indexed as a word."""
COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "how",
        "i",
        "in",
        "is",
        "it",
        "its",
        "me",
        "my",
        "of",
        "on",
        "or",
        "our",
        "shall",
        "should",
        "that",
        "the",
        "their",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "whom",
        "whose",
        "why",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)
"""Words of a question that say nothing about its subject."""


def passages_of(text: str) -> list[str]:
    """Return the passages of a text, in its order."""
    found: list[str] = []
    current = ""
    for piece in _pieces(text):
        if current and len(current) + len(piece) > PASSAGE_CHARACTERS:
            found.append(current)
            current = ""
            if len(found) == MAX_PASSAGES:
                return found
        current = f"{current}\n{piece}" if current else piece
    return [*found, current] if current else found


def _pieces(text: str) -> Iterator[str]:
    """Yield the lines of a text; long ones by sentences, and by words if need be."""
    for line in text.splitlines():
        clean = " ".join(line.split())
        if len(clean) <= PASSAGE_CHARACTERS:
            if clean:
                yield clean
            continue
        for sentence in SENTENCE.split(clean):
            rest = sentence
            while len(rest) > PASSAGE_CHARACTERS:
                head = rest[:PASSAGE_CHARACTERS].rpartition(" ")[0] or rest[:PASSAGE_CHARACTERS]
                yield head
                rest = rest[len(head) :].lstrip()
            if rest:
                yield rest


def spaced(text: str) -> str:
    """Return a text with each character of an unspaced script set apart."""
    return UNSPACED.sub(r" \1 ", text)


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, each once."""
    return list(dict.fromkeys(WORD.findall(spaced(text).casefold())))[:MAX_WORDS]


def telling_words(text: str) -> list[str]:
    """Return the words of a text that say something about its subject; all if none does."""
    words = words_of(text)
    return [word for word in words if word not in COMMON] or words


def query_of(question: str) -> str:
    """Return a question as an FTS5 query: any of its telling words; empty without words."""
    return " OR ".join(f'"{word}"' for word in telling_words(question))
