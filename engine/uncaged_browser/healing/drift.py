"""Expectations whose page differs only by the wording of its title or heading. Such drift is healed
if the flow can go on: the element of its next step is there, or one that takes its place.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..operations import Operation
from .healed import HealedExpectation
from .lexicon import FAILURES, actions_of, concepts, is_of_interfaces, words_of
from .likeness import likeness
from .search import begin_search, is_there
from .sought import HEALED

__all__ = ["begin_comparison", "is_reworded"]

TEXTS = ("title", "heading")
WILDCARD = re.compile(r"(?<!\\)\*")
NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
LEAST = 0.85
"""Least likeness of a text that takes the place of another."""


def begin_comparison(
    operation: Operation,
    drift: Sequence[Mapping[str, object]],
    following: Operation | None,
    others: Sequence[Operation] = (),
    values: Sequence[str] = (),
) -> Generator[Operation, object, HealedExpectation | None]:
    """Compare what an operation's page shows with what was expected; return the new expectation,
    or None if the difference is more than a rewording.

    Args:
        drift: the differences. following: the flow's next operation. others: all of them. values:
            of the parameters in the next operation's targets.
    """
    texts = _reworded(drift)
    if operation.expect is None or texts is None or not getattr(following, "target", None):
        return None
    if following is None or not (yield from _goes_on(following, others, values)):
        return None
    expected = operation.expect.document()
    return HealedExpectation(
        before=", ".join(f'{key} "{expected.get(key)}"' for key in texts),
        after=", ".join(f'{key} "{text}"' for key, text in texts.items()),
        expect=replace(
            operation.expect,
            **{key: _pattern(str(expected[key]), text) for key, text in texts.items()},
        ),
        score=round(min(likeness(_bare(str(expected[key])), texts[key]) for key in texts), 3),
        why=("the words mean the same", f"the element of the next step, {following.do}, is there"),
    )


def _goes_on(
    following: Operation, others: Sequence[Operation], values: Sequence[str]
) -> Generator[Operation, object, bool]:
    if (yield from is_there(following)) is True:
        return True
    if not isinstance(following, HEALED):
        return False
    found = yield from begin_search(following, others, values)
    return found.found or bool(found.healed)


def _reworded(drift: Sequence[Mapping[str, object]]) -> dict[str, str] | None:
    """Return the new texts by key; None if anything else differs."""
    found: dict[str, str] = {}
    for one in drift:
        key, shown = str(one.get("what")), one.get("found")
        texts: list[Any] = shown if isinstance(shown, list) else [shown]
        fitting = [str(text) for text in texts if is_reworded(str(one.get("expected")), str(text))]
        if key not in TEXTS or len(fitting) != 1:
            return None
        found[key] = fitting[0]
    return found or None


def is_reworded(pattern: str, text: str) -> bool:
    """Whether a text says what a pattern of an expectation says, in other words. More words are
    allowed only where all of them are words of user interfaces: a further word of the data is
    about another thing.
    """
    before = _bare(pattern)
    after = NUMBER.sub(" ", text) if WILDCARD.search(pattern) else text
    if ("not" in actions_of(before)) is not ("not" in actions_of(after)):
        return False
    added = set(words_of(after)) - set(words_of(before))
    if added & FAILURES:
        return False
    if sorted(concepts(before)) == sorted(concepts(after)):
        return bool(concepts(before))
    known = is_of_interfaces(before) and is_of_interfaces(after)
    return known and likeness(before, after) >= LEAST


def _bare(pattern: str) -> str:
    """Return a pattern without its wildcards."""
    return WILDCARD.sub(" ", pattern).replace("\\*", "*")


def _pattern(former: str, text: str) -> str:
    """Return the pattern of a text; numbers are any if the former pattern has wildcards."""
    escaped = text.replace("*", r"\*")
    return NUMBER.sub("*", escaped) if WILDCARD.search(former) else escaped
