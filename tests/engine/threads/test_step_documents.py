"""One step in full, from journals made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from testbed.journals import BUNDLE, THREAD, Script
from uncaged_bundles.errors import NotFoundError
from uncaged_bundles.storage.store import Store
from uncaged_engine.threads.step_documents import StepReader

HOSTILE = "<script>alert(1)</script>\u202egnp.exe"


def reader(store: Store, data: bytes) -> StepReader:
    return StepReader(store, BUNDLE, THREAD, data, start={}, environment={})


def script() -> Script:
    return (
        Script.begun()
        .done(
            1, {"http": {"method": "GET", "url": "https://example.org/"}}, outcome={"status": 200}
        )
        .intent(2, {"all": {"effects": [{"null": {"value": 1}}, {"now": {}}]}})
        .step(2, sub=0, outcome=1)
        .step(2, sub=1, error={"kind": "policy", "message": HOSTILE})
        .step(2, outcome=[1, None])
        .intent(3, {"ask": {"question": "really?"}})
        .control("wait", seq=3, question="really?")
        .control("answer", value="yes")
        .attempt(3, 2, because=HOSTILE)
        .step(3, outcome="yes")
        .intent(4, {"role": {"name": "coder", "prompt": HOSTILE}})
        .step(4, role="coder", content=HOSTILE, meta={"status": "done"}, by="scripted", extra=1)
    )


def test_a_step_has_its_effect_its_outcome_and_its_lines(store: Store) -> None:
    """Each kind of step has its parts in their places; the lines of the journal are those of the
    step, with its question and the answer.
    """
    steps = reader(store, script().data)
    first = steps.read("1")
    assert (first["kind"], first["mark"]) == ("http", "done")
    assert (first["effect"]["url"], first["data"]) == ("https://example.org/", {"status": 200})
    assert [line["number"] for line in first["lines"]] == [2, 3]
    asked = steps.read("3")
    assert asked["prompts"] == [{"title": "Question", "text": "really?"}]
    assert [one["attempt"] for one in asked["attempts"]] == [2]
    assert asked["data"] == "yes"
    assert ['"control":"answer"' in line["text"] for line in asked["lines"]].count(True) == 1
    role = steps.read("4")
    assert (role["answer"], role["data"], role["more"]) == (
        HOSTILE,
        {"status": "done"},
        {"extra": 1},
    )
    assert (role["label"], role["by"]) == ("coder", "scripted")
    assert role["prompts"] == [{"title": "Prompt of this step", "text": HOSTILE}]


def test_a_part_of_a_step_is_a_step_of_its_own(store: Store) -> None:
    """The parts of an `all` are listed, and each is read by its place."""
    steps = reader(store, script().data)
    whole = steps.read("2")
    assert [(one["seq"], one["mark"]) for one in whole["parts"]] == [
        ("2.0", "done"),
        ("2.1", "failed"),
    ]
    assert (whole["mark"], whole["data"]) == ("done", [1, None])
    part = steps.read("2.1")
    assert (part["kind"], part["mark"]) == ("now", "failed")
    assert part["error"]["message"] == HOSTILE
    assert len(part["lines"]) == 1


@pytest.mark.parametrize(
    "place", ["0", "5", "-1", "1.0", "2.9", "../1", "1/2", "٣", "1e3", "9" * 20, "", "2."]
)
def test_a_wrong_place_names_no_step(store: Store, place: str) -> None:
    """Anything but the number of a step, or of one of its parts, is not found."""
    with pytest.raises(NotFoundError):
        reader(store, script().data).read(place)


def test_a_damaged_line_is_shown_as_what_it_is(store: Store) -> None:
    """A changed line does not follow the chain, the line after it does, and a line that is no JSON
    is text.
    """
    data = script().data.replace(b'{"status":200}', b'{"status":404}')
    found: dict[str, Any] = reader(store, data).read("1")
    assert [line["follows"] for line in found["lines"]] == [True, False]
    assert found["data"] == {"status": 404}
    assert all(line["follows"] for line in reader(store, data).read("2")["lines"])
    torn = script().data.replace(b'{"status":200}', b'{"status":2\xff')
    found = reader(store, torn).read("1")
    assert (found["mark"], found["data"]) == ("open", None)
    assert "\ufffd" in found["lines"][1]["text"]


def test_a_trace_that_is_gone_is_said(store: Store) -> None:
    """A record that names a blob which the store does not have, or a path, is shown without it."""
    named = Script.begun().intent(1, {"role": {"name": "coder"}})
    named.step(1, role="coder", content="", meta={}, by="x", trace="../../config.yaml")
    found = reader(store, named.data).read("1")
    assert "not in this store" in found["trace"]["problem"]
