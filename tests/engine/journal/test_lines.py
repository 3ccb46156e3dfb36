"""A journal's lines tell their shapes by their first bytes."""

from __future__ import annotations

import json

import pytest
from testbed.journals import BUNDLE, NOW_MS, THREAD, Script, start_fields
from uncaged_engine.journal import chain, lines


def sealed(body: bytes) -> bytes:
    return chain.seal(chain.seed(BUNDLE, THREAD), body)[0]


SHAPES = {
    "start": (lines.start(start_fields(), NOW_MS), "start", 0),
    "intent": (lines.intent(12, b'{"null":{}}', NOW_MS), "intent", 12),
    "attempt": (lines.attempt(3, 2, {"because": "retry"}, NOW_MS), "attempt", 3),
    "outcome": (lines.step(4, {"outcome": None}, NOW_MS), "step", 4),
    "error": (lines.step(4, {"error": {"kind": "k", "message": "m"}}, NOW_MS), "step", 4),
    "role": (
        lines.step(10_000, {"role": "r", "content": "", "meta": {}, "by": "bundle"}, NOW_MS),
        "step",
        10_000,
    ),
    "sub": (lines.step(5, {"sub": 0, "outcome": 1}, NOW_MS), "step", 5),
    "void": (lines.void(6, "killed", "stopped", {}, NOW_MS, begun=True, parts=(1, 2)), "void", 6),
    "control": (lines.control("pause", {}, NOW_MS), "control", 0),
    "end": (lines.end("completed", {"result": None}, NOW_MS), "end", 0),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_line_tells_its_shape(name: str) -> None:
    """shape_of finds what a builder built, and its seq, without parsing."""
    body, shape, seq = SHAPES[name]
    assert lines.shape_of(sealed(body)) == (shape, seq)


def test_the_head_of_a_journal_tells_the_flow() -> None:
    """The name is found even if the record is cut off behind it, and is None if it is not in the
    first bytes.
    """
    body = lines.start(start_fields(), NOW_MS)
    name = json.loads(sealed(body))["name"]
    assert lines.flow_in(body[: lines.HEAD_BYTES]) == name
    assert lines.flow_in(body[: body.index(b'"name"') + 8]) is None


@pytest.mark.parametrize("name", SHAPES)
def test_every_line_is_one_json_object_with_a_timestamp_before_its_chain(name: str) -> None:
    """The documented order of keys: first the kind, last timestamp and chain."""
    record = json.loads(sealed(SHAPES[name][0]))
    assert list(record)[-2:] == ["timestamp", "chain"]
    assert record["timestamp"] == NOW_MS


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}\n",
        b'{"seq":1}\n',
        b'{"seq":x,"intent":1}\n',
        b'{"seq":1,"other":2}\n',
        b'{"step":1}\n',
        b"[1]\n",
    ],
)
def test_what_begins_otherwise_is_no_journal_line(line: bytes) -> None:
    """A line of no shape is a ValueError, so that a reader reports it as damage."""
    with pytest.raises(ValueError, match=r"no journal line|invalid literal|not found"):
        lines.shape_of(line)


def test_only_steps_of_a_role_count_as_rounds() -> None:
    """is_role_step and is_sub_step look at the first key after seq, not at the content."""
    role, outcome, sub = (sealed(SHAPES[name][0]) for name in ("role", "outcome", "sub"))
    assert [lines.is_role_step(line) for line in (role, outcome, sub)] == [True, False, False]
    assert [lines.is_sub_step(line) for line in (role, outcome, sub)] == [False, False, True]
    assert not lines.is_role_step(sealed(lines.step(1, {"outcome": {"role": "x"}}, NOW_MS)))


@pytest.mark.parametrize(
    "effect",
    [
        b'{"null":{}}',
        b'{"null":{"value":",\\"timestamp\\":1"}}',
        b'{"null":{"timestamp":5,"intent":{"seq":1}}}',
    ],
)
def test_the_effect_is_cut_out_to_the_letter(effect: bytes) -> None:
    """The intent holds the bundle's own bytes, even if they look like parts of a line."""
    assert lines.effect_of_intent(sealed(lines.intent(7, effect, NOW_MS))) == effect


def test_a_blob_note_is_found_and_nothing_else_is_taken_for_one() -> None:
    """Only a top-level ``blob`` key counts; text or an outcome that looks like one does not."""
    spilt = sealed(
        lines.step(
            1,
            lines.spill({"role": "r", "content": "long", "meta": {}}, "content", "ab" * 16, 9),
            NOW_MS,
        )
    )
    assert lines.blob_of(spilt) == {"field": "content", "hash": "ab" * 16, "bytes": 9}
    assert json.loads(spilt)["content"] is None
    for outcome in (
        {"x": 1, "blob": {"field": "y", "hash": "z"}},
        ',"blob":{"field":"x"}',
        {"blob": {"field": "q"}},
    ):
        assert lines.blob_of(sealed(lines.step(1, {"outcome": outcome}, NOW_MS))) is None
    assert lines.blob_of(Script.begun().sealed[0]) is None
