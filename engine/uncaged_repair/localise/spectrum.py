"""Spectrum-based fault localisation (Ochiai): suspiciousness of lines from failing and passing
tests, raised by hints of the failures.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from ..harness.results import Frame, Line

DEEPEST_FRAME = 1.35
FRAME = 1.15
NAMED = 1.15
TESTED = 1.1
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")


def ochiai(
    failing: Sequence[frozenset[Line]], passing: Iterable[frozenset[Line]]
) -> dict[Line, float]:
    """Return the suspiciousness of each line that a failing test ran, between 0 and 1."""
    failed: dict[Line, int] = {}
    for lines in failing:
        for line in lines:
            failed[line] = failed.get(line, 0) + 1
    passed = dict.fromkeys(failed, 0)
    for lines in passing:
        for line in lines & failed.keys():
            passed[line] += 1
    return {
        line: count / math.sqrt(len(failing) * (count + passed[line]))
        for line, count in failed.items()
    }


def apply_hints(
    suspicion: Mapping[Line, float],
    frames: Iterable[Sequence[Frame]],
    functions: Mapping[Line, str],
    text: str,
    *,
    tested: str = "",
) -> dict[Line, float]:
    """Raise the lines in tracebacks, once each, and those whose file or function *text* (the issue)
    names; scale the highest to 1.

    functions: the name of the function around each line. tested: names of the failing tests, which
    often have the name of the function under test in them.
    """
    found = dict(suspicion)
    factors: dict[Line, float] = {}
    for stack in frames:
        inside = [(frame.path, frame.line) for frame in stack if (frame.path, frame.line) in found]
        for line in inside:
            factor = DEEPEST_FRAME if line == inside[-1] else FRAME
            factors[line] = max(factor, factors.get(line, 0.0))
    for line, factor in factors.items():
        found[line] *= factor
    words = {word.lower() for word in WORD.findall(text)}
    for line in found:
        path, function = line[0], functions.get(line, "")
        parts = {part.lower() for part in (*re.split(r"[/.]", path), function) if part}
        if words & parts:
            found[line] *= NAMED
        name = function.strip("_").lower()
        if len(name) > 2 and re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", tested):
            found[line] *= TESTED
    highest = max(found.values(), default=1.0)
    return {line: value / highest for line, value in found.items()}


def group_tests(tops: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """Group failing tests by the place that each suspects most. The largest group comes first, else
    the order is kept.

    tops: test to its most suspicious places, best first.
    """
    groups: dict[str, list[str]] = {}
    for name, places in tops.items():
        shared = next((place for place in places if place in groups), None)
        groups.setdefault(shared or (places[0] if places else ""), []).append(name)
    return [tuple(names) for _, names in sorted(groups.items(), key=lambda item: -len(item[1]))]
