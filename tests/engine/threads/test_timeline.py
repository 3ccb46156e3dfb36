"""From records to rows."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from uncaged_engine.journal.labels import effect_label
from uncaged_engine.threads.timeline import Row, Timeline, role_summary, value_summary


def tell(*records: Mapping[str, object]) -> tuple[Timeline, list[Row]]:
    timeline = Timeline()
    return timeline, [row for record in records if (row := timeline.add(record)) is not None]


START = {"format": 1, "name": "solve", "hash": "C9NMV6V2TQT81", "timestamp": 900}
INTENT = {"seq": 1, "intent": {"role": {"name": "coder"}}, "timestamp": 1_000}
STEP = {
    "seq": 1,
    "role": "coder",
    "content": "…",
    "meta": {"status": "phase-done", "summary": "fixed add"},
    "by": "repair",
    "timestamp": 4_200,
}


def test_a_role_step_says_status_time_and_who_answered() -> None:
    """The time runs from the intent to the outcome."""
    timeline, rows = tell(START, INTENT, STEP)
    assert rows == [
        Row(
            mark="done",
            seq="1",
            label="coder",
            detail="phase-done: fixed add",
            duration_ms=3_200,
            by="repair",
        )
    ]
    assert (timeline.steps, timeline.open) == (1, None)


def test_an_open_intent_is_the_step_in_flight() -> None:
    """The last intent is open until its outcome is recorded."""
    timeline, rows = tell(START, INTENT)
    assert rows == []
    assert timeline.open is not None
    assert (timeline.open.seq, timeline.open.label, timeline.open.started_ms) == (1, "coder", 1_000)


def test_an_output_step_has_no_time() -> None:
    """A step that the bundle made itself was never in flight."""
    _timeline, rows = tell(
        START,
        {
            "seq": 1,
            "role": "report",
            "content": "done\nmore",
            "meta": {},
            "by": "bundle",
            "timestamp": 2,
        },
    )
    assert rows[0].duration_ms is None
    assert rows[0].detail == "done"


def test_an_error_is_a_failed_step() -> None:
    """A failure counts as a step and shows kind and message."""
    timeline, rows = tell(
        INTENT, {"seq": 1, "error": {"kind": "timeout", "message": "after 5 s"}, "timestamp": 6_000}
    )
    assert (rows[0].mark, rows[0].detail, timeline.steps) == ("failed", "timeout: after 5 s", 1)


def test_a_void_leaves_the_intent_open() -> None:
    """A void is shown and remembered, and is no step."""
    timeline, rows = tell(
        INTENT, {"seq": 1, "void": "environment", "message": "no key", "timestamp": 1_500}
    )
    assert (rows[0].mark, rows[0].detail) == ("void", "environment: no key")
    assert (timeline.last_void, timeline.steps) == ("environment", 0)
    assert timeline.open is not None


def test_a_pause_does_not_count_as_time_spent() -> None:
    """After a resume the clock of an open step starts again."""
    _timeline, rows = tell(
        INTENT,
        {"seq": 1, "void": "killed", "message": "", "timestamp": 1_500},
        {"control": "resume", "timestamp": 9_000_000},
        {**STEP, "timestamp": 9_002_000},
    )
    assert rows[-1].duration_ms == 2_000


def test_a_resume_takes_back_the_end() -> None:
    """A limit that was raised is not the end any more."""
    timeline, _rows = tell({"end": "limit", "timestamp": 1})
    assert timeline.end is not None
    timeline.add({"control": "resume", "timestamp": 2})
    assert timeline.end is None


def test_a_wait_remembers_the_question() -> None:
    """The question is known until the thread goes on."""
    timeline, rows = tell({"control": "wait", "question": "which?", "schema": {}, "timestamp": 1})
    assert (rows[0].label, rows[0].detail, timeline.wait["question"]) == (
        "wait",
        "which?",
        "which?",
    )
    timeline.add({"control": "answer", "value": 7, "timestamp": 2})
    assert timeline.wait == {}


def test_an_attempt_is_told_and_counted() -> None:
    """A repaired answer shows which attempt runs and why."""
    timeline, rows = tell(
        INTENT,
        {
            "seq": 1,
            "attempt": 2,
            "because": "retry",
            "error": {"message": "HTTP 503"},
            "timestamp": 1_200,
        },
    )
    assert (rows[0].mark, rows[0].detail) == ("attempt", "attempt 2: HTTP 503")
    assert timeline.open is not None
    assert timeline.open.attempt == 2


def test_a_turn_that_a_pause_ended_lacks_nothing() -> None:
    """A void after a person's pause is not about the environment: nothing has to be fixed before a
    resume.
    """
    void = {
        "seq": 1,
        "void": "environment",
        "message": "paused before it was done",
        "timestamp": 1_300,
    }
    timeline, rows = tell(INTENT, {"control": "pause", "timestamp": 1_200}, void)
    assert (rows[-1].detail, timeline.last_void) == ("paused before it was done", "")
    timeline, rows = tell(
        INTENT,
        {"control": "pause", "timestamp": 1_200},
        {"control": "resume", "timestamp": 1_250},
        void,
    )
    assert (rows[-1].detail, timeline.last_void) == (
        "environment: paused before it was done",
        "environment",
    )


def test_an_unusable_answer_is_told_as_one() -> None:
    """The row of a rejected answer has no number: its line counts the attempt that begins."""
    _timeline, rows = tell(
        INTENT, {"seq": 1, "attempt": 4, "answer": "hm", "problem": "no block", "timestamp": 1_200}
    )
    assert (rows[0].mark, rows[0].detail) == ("attempt", "unusable answer: no block")


def test_sub_steps_carry_the_label_of_their_own_effect() -> None:
    """Steps inside `all` are rows of their own and do not close the whole."""
    intent = {
        "seq": 3,
        "intent": {
            "all": {"effects": [{"http": {"method": "GET", "url": "http://a"}}, {"null": {}}]}
        },
        "timestamp": 0,
    }
    timeline, rows = tell(
        intent,
        {"seq": 3, "sub": 0, "outcome": 1, "timestamp": 5},
        {"seq": 3, "outcome": [1, None], "timestamp": 9},
    )
    assert [(row.seq, row.label) for row in rows] == [("3.0", "http GET http://a"), ("3", "all")]
    assert timeline.steps == 1


def test_rows_are_clean() -> None:
    """A row of any agent's text has no control character and no line end."""
    _timeline, rows = tell(
        {
            "seq": 1,
            "role": "a\x1b[2J",
            "content": "",
            "meta": {"status": "ok\n\x9b31m"},
            "by": "x\u202e",
            "timestamp": 1,
        }
    )
    assert (rows[0].label, rows[0].detail, rows[0].by) == ("a", "ok", "x")


@pytest.mark.parametrize(
    ("meta", "line"),
    [
        (
            {"status": "planned", "phases": [{"name": "fix"}, {"name": "test"}]},
            "planned: phases fix, test",
        ),
        ({"status": "approved"}, "approved"),
        (
            {"status": "committed", "branch": "b", "commitSha": "abc"},
            "committed: branch b; commitSha abc",
        ),
        ({"status": "rejected", "issues": [{"line": 1}, {"line": 2}]}, "rejected: 2 issues"),
        ({"files": ["a", "b", "c", "d"]}, "files a, b, c …"),
        (
            {"status": "aborted", "reason": "no failing test", "phases": []},
            "aborted: no failing test",
        ),
        (
            {"files": ["a.py"], "status": "done", "summary": "off by one."},
            "done: off by one; files a.py",
        ),
        ({"score": {"a": 1}}, "score {a}"),
        ({}, "first line"),
    ],
)
def test_meta_becomes_one_line(meta: Mapping[str, object], line: str) -> None:
    """Status first, then what else the meta says; without meta, the answer's first line."""
    assert role_summary({"meta": meta, "content": "\n```json\nfirst line\nsecond"}) == line


def test_an_outcome_becomes_one_line() -> None:
    """Any JSON value has a line."""
    assert value_summary(None) == ""
    assert value_summary([1, 2]) == "2 items"
    assert value_summary({"status": 200, "text": ""}) == "status 200"
    assert value_summary("a\nb") == "a b"


def test_labels_say_what_an_effect_is_about() -> None:
    """A role by its name, other kinds by what they aim at; a body of any shape will do."""
    assert effect_label("role", {"name": "coder"}) == "coder"
    assert effect_label("flow", {"name": "other"}) == "flow other"
    assert (
        effect_label("http", {"method": "GET", "url": "u", "label": "block 1 of 2"})
        == "block 1 of 2: http GET u"
    )
    assert effect_label("null", None) == "null"
    assert effect_label("all", [1]) == "all"


def test_the_last_step_from_outside_is_known() -> None:
    """Steps that the bundle made itself, parts of a step and voids do not count: the same bundle
    makes them again.
    """
    timeline = Timeline()
    heard: list[tuple[dict[str, object], int]] = [
        ({"seq": 1, "intent": {"now": {}}, "timestamp": 1}, 0),
        ({"seq": 1, "outcome": 5, "timestamp": 2}, 1),
        ({"seq": 2, "role": "coder", "content": "x", "meta": {}, "by": "model", "timestamp": 3}, 2),
        ({"seq": 3, "sub": 0, "outcome": 5, "timestamp": 3}, 2),
        (
            {
                "seq": 3,
                "role": "report",
                "content": "x",
                "meta": {},
                "by": "bundle",
                "timestamp": 4,
            },
            2,
        ),
        ({"seq": 4, "error": {"kind": "policy", "message": "refused"}, "timestamp": 5}, 2),
        ({"seq": 5, "error": {"kind": "timeout", "message": "late"}, "timestamp": 5}, 5),
    ]
    for record, expected in heard:
        timeline.add(record)
        assert timeline.last_outside == expected


def test_a_row_shows_the_beginning_of_a_huge_text() -> None:
    """A field of ten million characters is not read whole to make a line of it."""
    huge = "word " * 2_000_000
    error = {**INTENT, "intent": {"http": {"url": huge}}}
    for record in ({**STEP, "meta": {"summary": huge}}, {"seq": 1, "error": {"message": huge}}):
        _, [row] = tell(START, error, record)
        assert 1000 < len(row.detail) < 50_000
        assert len(row.label) < 50_000
