"""Groups of past threads whose replays with another version end alike."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .regression import ReplayCheck

MAX_PLACES = 8
"""Places of an effect that differ are named up to this number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayGroup:
    """Replays that end alike, the newest thread first: identical, with success where the thread
    failed, or with a difference at the same step. places: dotted paths in the effect that differ;
    none if there is no other effect.
    """

    checks: tuple[ReplayCheck, ...]
    places: tuple[str, ...] = ()

    @property
    def newest(self) -> ReplayCheck:
        """Return the replay of the newest thread."""
        return self.checks[0]


def group_checks(checks: Sequence[ReplayCheck]) -> list[ReplayGroup]:
    """Group replays: those that succeed now, the others by the step and the places that differ, or
    else by the message. Those that differ come first, the largest group at the top, then those that
    succeed now.
    """
    groups: dict[tuple[object, ...], list[ReplayCheck]] = {}
    for check in sorted(checks, key=lambda one: one.thread_id, reverse=True):
        groups.setdefault(_key(check), []).append(check)
    found = [
        ReplayGroup(
            checks=tuple(members),
            places=() if members[0].succeeds_now else _places(members[0]),
        )
        for members in groups.values()
    ]
    return sorted(
        found,
        key=lambda one: (one.newest.identical, one.newest.succeeds_now, -len(one.checks)),
    )


def _key(check: ReplayCheck) -> tuple[object, ...]:
    if check.identical or check.succeeds_now:
        return (check.identical,)
    places = _places(check)
    return check.step, places, "" if places else check.message


def _places(check: ReplayCheck) -> tuple[str, ...]:
    """Return where the new effect differs; of another kind of effect, both kinds."""
    recorded, yielded = _effect(check.recorded), _effect(check.yielded)
    if recorded is None:
        return ()
    if yielded is None:
        return (check.yielded.partition(" ")[0],)
    return tuple(_differences(recorded, yielded, ()))[:MAX_PLACES]


def _effect(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _differences(recorded: object, yielded: object, path: tuple[str, ...]) -> Iterator[str]:
    if isinstance(recorded, dict) and isinstance(yielded, dict):
        for key in sorted({*recorded, *yielded}):
            if key in recorded and key in yielded:
                yield from _differences(recorded[key], yielded[key], (*path, key))
            else:
                yield ".".join((*path, key))
    elif recorded != yielded:
        yield ".".join(path)
