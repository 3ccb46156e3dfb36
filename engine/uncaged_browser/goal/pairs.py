"""Pairs ``key: value`` of a prompt: one a line, or in a single line with commas between them. A
value in double quotes is taken whole.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from uncaged_bundles.records import dataclass

__all__ = ["BeyondForms", "PromptPair", "hidden_pairs", "normal", "read_pairs"]

KEY = r"[^\W\d_][^:\n,;\"]{0,79}?"
PAIR = re.compile(rf"(?:[-*•][ \t]+)?(?P<key>{KEY})[ \t]*:(?!//)[ \t]*")
QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"[ \t]*(?=,|\n|\Z)', re.DOTALL)
ESCAPED = re.compile(r"\\([\"\\])")
LINE_END = re.compile(r"\n")
PAIR_END = re.compile(rf",(?=\s*{KEY}[ \t]*:(?!//))|\n")
WITHIN_VALUE = re.compile(rf"[,;]\s*({KEY})[ \t]*:")
REMARK = re.compile(r"\s*\([^()]*\)\s*\Z")
SHOWN_CHARACTERS = 80
MAX_PAIRS = 100


class BeyondForms(Exception):
    """Reason why a task cannot be done by filling the one form of a page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptPair:
    """One pair. quoted: its value was in double quotes."""

    key: str
    value: str
    quoted: bool = False


def read_pairs(prompt: str, url: str = "") -> list[PromptPair]:
    """Return the pairs of a prompt, which has nothing besides.

    Args:
        url: the page's address; a line may begin with it.
    Raises:
        BeyondForms: it has other text, no pair, or a key twice.
    """
    text = _without_address(prompt, url).strip()
    found = list(_pairs(text))
    if not found:
        raise BeyondForms("the prompt has no pairs `key: value`")
    if len(found) > MAX_PAIRS:
        raise BeyondForms(f"the prompt has {len(found)} pairs; at most {MAX_PAIRS} are filled in")
    keys = [normal(pair.key) for pair in found]
    for number, key in enumerate(keys):
        if key in keys[:number]:
            raise BeyondForms(f"the prompt has {found[number].key!r} twice")
    return found


def hidden_pairs(pair: PromptPair) -> list[str]:
    """Return what may be keys of further pairs within an unquoted value."""
    return [] if pair.quoted else WITHIN_VALUE.findall(pair.value)


def normal(text: str) -> str:
    """Return a label as it is compared: without case, spaces, punctuation and a remark in
    parentheses at its end.
    """
    plain = unicodedata.normalize("NFKC", REMARK.sub("", text) or text).casefold()
    return "".join(char for char in plain if char.isalnum())


def _pairs(text: str) -> Iterator[PromptPair]:
    to_end = LINE_END if "\n" in QUOTED.sub("", text) else PAIR_END
    position = 0
    while position < len(text):
        match = PAIR.match(text, position)
        if match is None:
            rest = text[position:].partition("\n")[0][:SHOWN_CHARACTERS]
            raise BeyondForms(f"{rest!r} in the prompt is no pair `key: value`")
        key, quoted = match["key"].strip(), QUOTED.match(text, match.end())
        if quoted is not None:
            yield PromptPair(key=key, value=ESCAPED.sub(r"\1", quoted[1]), quoted=True)
            position = quoted.end()
        else:
            end = to_end.search(text, match.end())
            position = len(text) if end is None else end.start()
            yield PromptPair(key=key, value=text[match.end() : position].strip())
        while position < len(text) and (text[position] == "," or text[position].isspace()):
            position += 1


def _without_address(prompt: str, url: str) -> str:
    """Return the prompt without the page's address at the beginning of its lines."""
    if not url:
        return prompt
    address = re.escape(url.partition("://")[2])
    return re.sub(rf"(?im)^[ \t]*(?:https?://)?{address}(?:[.,;:!?]*(?=\s|\Z))", "", prompt)
