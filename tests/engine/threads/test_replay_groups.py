"""Groups of past threads by what a version would do otherwise."""

from __future__ import annotations

import dataclasses
import json

import pytest
from uncaged_bundles.ids import ThreadId
from uncaged_engine.threads.regression import ReplayCheck
from uncaged_engine.threads.replay_groups import MAX_PLACES, group_checks


def differing(number: int, recorded: object, yielded: object, step: int = 1) -> ReplayCheck:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in (recorded, yielded)]
    return ReplayCheck(
        thread_id=ThreadId(f"{number:026}"),
        steps=3,
        identical=False,
        step=step,
        recorded=texts[0],
        yielded=texts[1],
        message=f"of thread {number}",
    )


def test_values_that_every_thread_has_for_itself_make_no_group() -> None:
    """Threads belong together if the same place differs, whatever it holds; the newest is shown,
    and the largest group comes first.
    """
    same = ReplayCheck(thread_id=ThreadId("9" * 26), steps=3, identical=True)
    checks = [
        differing(1, {"http": {"url": "a", "query": {"n": 1}}}, {"http": {"url": "a"}}),
        differing(2, {"fs": {"path": "a"}}, {"fs": {"path": "b"}}),
        same,
        differing(3, {"fs": {"path": "c"}}, {"fs": {"path": "d"}}),
        differing(4, {"fs": {"path": "c"}}, {"fs": {"path": "d"}}, step=2),
    ]
    groups = group_checks(checks)
    assert [(len(one.checks), one.newest.step, one.places) for one in groups] == [
        (2, 1, ("fs.path",)),
        (1, 2, ("fs.path",)),
        (1, 1, ("http.query",)),
        (1, 0, ()),
    ]
    assert groups[0].newest.thread_id == checks[3].thread_id
    assert groups[-1].newest is same


@pytest.mark.parametrize(
    ("yielded", "places"),
    [
        ({"llm": {}}, ("fs", "llm")),
        ('return {"success": true}', ("return",)),
        ("raise x", ("raise",)),
    ],
)
def test_another_kind_of_effect_or_an_end_is_named(
    yielded: object, places: tuple[str, ...]
) -> None:
    """It has no place in the recorded effect."""
    assert group_checks([differing(1, {"fs": {}}, yielded)])[0].places == places


def test_threads_that_succeed_now_are_one_group_behind_those_that_differ() -> None:
    """Whatever the version does otherwise in them."""
    checks = [differing(1, {"fs": {}}, {"llm": {}}), differing(2, "", "")]
    now = [dataclasses.replace(one, succeeds_now=True) for one in checks]
    found = group_checks([*now, differing(3, {"fs": 1}, {"fs": 2})])
    assert [(len(one.checks), one.newest.succeeds_now, one.places) for one in found] == [
        (1, False, ("fs",)),
        (2, True, ()),
    ]


def test_few_places_are_named() -> None:
    """An effect that differs everywhere is named by its first places."""
    [group] = group_checks([differing(1, {"fs": {}}, {"fs": dict.fromkeys("abcdefghij", 1)})])
    assert group.places == tuple(f"fs.{key}" for key in "abcdefghij"[:MAX_PLACES])


def test_threads_without_another_effect_are_grouped_by_their_message() -> None:
    """Such as those whose journals cannot be replayed."""
    assert len(group_checks([differing(1, "", ""), differing(2, "", "")])) == 2
