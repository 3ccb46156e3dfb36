"""Words of user interfaces: words of equal meaning, and the actions that a name promises.

An action is a word for what a control does, in several languages. A control never takes the place
of another whose action differs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path

__all__ = [
    "FAILURES",
    "GRAVE",
    "QUALIFIERS",
    "SENDING",
    "actions_of",
    "concepts",
    "is_of_interfaces",
    "words_of",
]

Table = Mapping[str, tuple[str, ...]]
FILE = Path(__file__).with_name("words.txt")


def _tables(text: str) -> Mapping[str, Table]:
    """Return the sections of the file of words."""
    tables: dict[str, dict[str, tuple[str, ...]]] = {}
    for line in text.splitlines():
        if line.startswith("["):
            table = tables.setdefault(line[1 : line.index("]")], {})
        elif ":" in line and not line.startswith("#"):
            name, _, words = line.partition(":")
            table[name] = tuple(words.split())
    return tables


_TABLES = _tables(FILE.read_text("utf-8"))
ACTIONS = _TABLES["actions"]
"""Words by action, in several languages."""
THINGS = _TABLES["things"]
"""Words of equal meaning for what a control is about."""
GRAVE = frozenset(_TABLES["sets"]["grave"])
"""Actions that cannot be taken back, or that other people see: a control without them is never
replaced by one with them.
"""
SENDING = frozenset(_TABLES["sets"]["sending"])
"""Actions of buttons that a proof run does not press without a yes, even for a form by GET."""
EMPTY = frozenset(_TABLES["sets"]["empty"])
"""Words that change no meaning beside others."""
FAILURES = frozenset(_TABLES["sets"]["failures"])
"""Words of a page on which something went wrong."""
NEGATIONS = frozenset(_TABLES["sets"]["negations"])
QUALIFIERS = frozenset(_TABLES["sets"]["qualifiers"])
"""Words that make another control of one with the same other words."""
KEPT_TEXTS = 4096
"""Texts of pages whose words are kept."""
WORD = re.compile(r"[^\W_]+")


@lru_cache(maxsize=KEPT_TEXTS)
def actions_of(text: str) -> frozenset[str]:
    """Return the actions that a name promises, with ``not`` for a negation."""
    found = {one for one in concepts(text) if one in ACTIONS}
    if NEGATIONS & set(WORD.findall(plain(text))):
        found.add("not")
    return frozenset(found)


@lru_cache(maxsize=KEPT_TEXTS)
def concepts(text: str) -> tuple[str, ...]:
    """Return the words of a text without those that change no meaning; words and phrases of equal
    meaning are equal.
    """
    words = words_of(text)
    found: list[str] = []
    at = 0
    while at < len(words):
        for length in (4, 3, 2, 1):
            phrase = "_".join(words[at : at + length])
            if len(words[at : at + length]) == length and (length == 1 or phrase in _known()):
                found.append(_concept(phrase))
                at += length
                break
    kept = [one for one in found if one not in EMPTY]
    return tuple(kept or found)


def is_of_interfaces(text: str) -> bool:
    """Whether all words of a text are words of user interfaces, and none is of a page's data."""
    return all(one in _concepts_known() or one in EMPTY for one in concepts(text))


def _concept(phrase: str) -> str:
    """Return the concept of a word or phrase, or itself; that of a plural is the singular's."""
    single = phrase.removesuffix("s")
    return _known().get(phrase) or _known().get(single, phrase)


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, without accents; numbers are equal."""
    return [re.sub(r"\d+", "0", word) for word in WORD.findall(plain(text))]


def plain(text: str) -> str:
    """Return a text in lower case without accents and apostrophes."""
    spread = unicodedata.normalize("NFKD", text.casefold().replace("ø", "o").replace("ł", "l"))
    bare = "".join(one for one in spread if not unicodedata.combining(one))
    return bare.replace("'", "").replace("’", "")


@cache
def _concepts_known() -> frozenset[str]:
    return frozenset((*THINGS, *ACTIONS))


@cache
def _known() -> Mapping[str, str]:
    return {
        word: concept
        for table in (THINGS, ACTIONS)
        for concept, words in table.items()
        for word in words
    }
