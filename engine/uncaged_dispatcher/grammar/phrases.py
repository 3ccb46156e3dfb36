"""Phrase sets of everyday speech that every grammar may refer to, longest phrase first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from uncaged_dispatcher.grammar.syntax import Alternative, Literal, PartValue, Spacing


def _longest_first(phrases: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(phrases, key=lambda phrase: (-len(phrase.split()), -len(phrase), phrase)))


# "can you" is missing on purpose: it asks whether something is possible
PHRASES: Mapping[str, tuple[str, ...]] = {
    "Polite": _longest_first(
        (
            "please",
            "could you",
            "could you please",
            "could you kindly",
            "would you",
            "would you please",
            "would you kindly",
            "would you mind",
            "will you please",
            "can you please",
            "if you please",
            "i would like you to",
            "i'd like you to",
            "i want you to",
            "i need you to",
        )
    ),
    "Greeting": _longest_first(
        (
            "hello",
            "hello there",
            "hi",
            "hi there",
            "hey",
            "hey there",
            "greetings",
            "good morning",
            "good afternoon",
            "good evening",
            "good day",
        )
    ),
    "Acknowledgement": _longest_first(
        (
            "ok",
            "okay",
            "sure",
            "right",
            "all right",
            "alright",
            "fine",
            "great",
            "perfect",
            "got it",
            "sounds good",
            "yes",
            "yeah",
            "yep",
            "thanks",
            "thank you",
            "thanks a lot",
            "thank you very much",
        )
    ),
    "FillerWord": _longest_first(
        (
            "um",
            "uh",
            "er",
            "erm",
            "hm",
            "hmm",
            "ah",
            "oh",
            "well",
            "so",
            "like",
            "just",
            "actually",
            "basically",
            "anyway",
            "you know",
            "i mean",
            "kind of",
            "sort of",
        )
    ),
}


def phrase_alternatives(name: str) -> tuple[Alternative, ...]:
    """Return the alternatives of a phrase set; the value of each is the phrase."""
    return tuple(
        Alternative((Literal(tuple(phrase.split())),), Spacing.AUTO, PartValue(0))
        for phrase in PHRASES[name]
    )
