"""Help for a sentence that no rule read: the nearest flows, and a misspelt word."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..calls import Nearest
from ..grammar.sentences import fold, index_words

NEAREST = 3
SHOWN_PATTERNS = 3
MOST_UNKNOWN = 20
SIMILAR = 80.0
"""Similarity in percent from which two words count as forms of one."""
_MARKS = re.compile(r"\$\(([A-Za-z_][\w-]*)[^()]*\)\??|[()|?*+\\<>]")


def nearest_flows(sentence: str, patterns: Iterable[tuple[str, str, str]]) -> tuple[Nearest, ...]:
    """Return the flows that share the rarest words with a sentence, best first. Forms of a word
    count as that word.

    patterns: flow, description and pattern of each rule.
    """
    shown: dict[str, list[str]] = {}
    descriptions: dict[str, str] = {}
    words: dict[str, set[str]] = {}
    for flow, description, pattern in patterns:
        shown.setdefault(flow, []).append(pattern)
        if flow not in words:
            descriptions[flow] = description
            words[flow] = set(index_words(fold(f"{flow.replace('-', ' ')} {description}")))
        words[flow].update(index_words(_MARKS.sub(" ", fold(pattern))))
    flows_of = Counter(word for found in words.values() for word in found)
    scores: dict[str, float] = {}
    for asked in dict.fromkeys(index_words(fold(sentence))):
        forms = _forms(asked, list(flows_of))
        weight = math.log((2 + len(words)) / (1 + min(map(flows_of.__getitem__, forms), default=0)))
        for flow in (
            flow for flow, found in words.items() if forms and not found.isdisjoint(forms)
        ):
            scores[flow] = scores.get(flow, 0.0) + weight
    ordered = sorted((flow for flow in scores if scores[flow] > 0), key=lambda f: (-scores[f], f))
    return tuple(
        Nearest(
            flow=flow,
            patterns=tuple(shown[flow][:SHOWN_PATTERNS]),
            description=descriptions[flow],
        )
        for flow in ordered[:NEAREST]
    )


def _forms(word: str, known: Sequence[str]) -> set[str]:
    """Return the known words that are like a word."""
    # 10 ms of CPU, for a person who reads the answer
    from rapidfuzz import fuzz, process

    found = process.extract(word, known, scorer=fuzz.ratio, score_cutoff=SIMILAR, limit=None)
    return {other for other, *_ in found}


def corrected(sentence: str, words: Sequence[str], reads: Callable[[str], bool]) -> str | None:
    """Return the first correction that a flow reads, or None."""
    return next((text for text in corrections(sentence, words) if reads(text)), None)


def corrections(sentence: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the sentence with one unknown word replaced by the only grammar word that is close.

    words: all words of the grammars.
    """
    from rapidfuzz import process
    from rapidfuzz.distance import OSA

    known = set(words)
    unknown = [word for word in dict.fromkeys(index_words(fold(sentence))) if word not in known]
    for word in unknown[:MOST_UNKNOWN]:
        if len(word) < 3 or not word.isalpha():
            continue
        most = 1 if len(word) <= 4 else 2
        close = process.extract(word, words, scorer=OSA.distance, score_cutoff=most, limit=None)
        least = min((distance for _, distance, _ in close), default=0)
        best = [other for other, distance, _ in close if distance == least]
        if len(best) == 1:
            yield _replaced(sentence, word, best[0])


def _replaced(sentence: str, word: str, other: str) -> str:
    """Return the sentence with the first place of a whole word replaced."""
    folded = fold(sentence)
    for found in re.finditer(re.escape(word), folded):
        alone = index_words(folded[: found.start()]), index_words(folded[: found.end()])
        if len(alone[1]) == len(alone[0]) + 1 and alone[1][-1] == word:
            return sentence[: found.start()] + other + sentence[found.end() :]
    return sentence
