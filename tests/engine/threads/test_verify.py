"""A journal is proved: this code with these outcomes gives this journal."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from testbed.bundles import COUNT, PLANNED, Placed, granted, place_script, script_of, source
from testbed.journals import Script
from uncaged_bundles.storage.store import Store
from uncaged_engine.threads.verify import Verification, verify

MESSAGE = {"success": True, "message": "sum 6"}


def proof(store: Store, placed: Placed, prefer: str = "auto") -> Verification:
    return verify(
        store, placed.bundle.hash, placed.thread, placed.path, prefer=prefer, deadline_s=20
    )


def proof_of(
    store: Store, script: Script, text: bytes = COUNT, prefer: str = "auto"
) -> Verification:
    return proof(store, place_script(store, granted(store, text), script), prefer)


def counted(store: Store, n: int = 3, done: int = 3) -> Script:
    script = script_of(granted(store, COUNT), params={"n": n})
    for seq in range(1, done + 1):
        script.done(seq)
    return script


@pytest.mark.parametrize("prefer", ["bubblewrap", "landlock"])
def test_an_honest_journal_is_proved(store: Store, prefer: str) -> None:
    """A verification in either sandbox names it and the number of replayed steps."""
    verdict = proof_of(store, counted(store).end("completed", result=MESSAGE), prefer=prefer)
    assert verdict == Verification(
        ok=True,
        steps=3,
        mechanism=prefer,
        message="3 steps replayed: this code with these outcomes gives this journal",
    )


Build = Callable[[Script], Script]
OPEN: dict[str, Build] = {
    "nothing yet": lambda s: s,
    "in flight": lambda s: s.intent(4),
    "voided": lambda s: s.intent(4).void(4),
    "killed": lambda s: s.intent(4).void(4).end("killed"),
    "at its limit": lambda s: s.end("limit", limit="maxSteps", value=3),
    "paused and resumed": lambda s: s.control("pause").control("resume").done(4),
}


@pytest.mark.parametrize("name", OPEN)
def test_a_journal_without_an_end_of_its_own_is_proved_as_far_as_it_goes(
    name: str, store: Store
) -> None:
    """Voids, controls and limits are the engine's, not the bundle's."""
    assert proof_of(store, OPEN[name](counted(store, n=9))).ok


def test_an_error_that_was_raised_is_proved(store: Store) -> None:
    """Type and message are those that this code raises after these outcomes."""
    for message, ok in (("as planned", True), ("another", False)):
        script = script_of(granted(store, PLANNED), params={"plan": [{"null": {}}, "raise"]}).done(
            1, {"null": {}}, outcome=None
        )
        script.end(
            "failed",
            error={"kind": "bundle", "type": "ValueError", "message": message, "trace": ""},
        )
        assert proof_of(store, script, PLANNED).ok == ok


LIES: dict[str, tuple[Build, str]] = {
    "another effect": (
        lambda s: s.done(1).done(2, {"null": {"value": 9}}, outcome=2).done(3),
        "step 2: the journal holds",
    ),
    "an outcome that leads elsewhere": (
        lambda s: s.done(1, outcome=7).done(2).done(3).end("completed", result=MESSAGE),
        "sum 12",
    ),
    "another result": (
        lambda s: (
            s.done(1).done(2).done(3).end("completed", result={"success": True, "message": "sum 7"})
        ),
        "the bundle now with return",
    ),
    "an end too early": (
        lambda s: s.done(1).done(2).end("completed", result=MESSAGE),
        "the bundle now with effect",
    ),
    "a step too many": (lambda s: s.done(1).done(2).done(3).done(4), "step 4: the journal holds"),
    "another open effect": (
        lambda s: s.done(1).intent(2, {"null": {"value": 1}}),
        "step 2: the journal holds",
    ),
    "an error that never was": (
        lambda s: s.done(1).end(
            "failed", error={"kind": "bundle", "type": "ValueError", "message": "x"}
        ),
        "the bundle now with effect",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_is_found_although_every_line_is_sealed(name: str, store: Store) -> None:
    """A forger can seal each line; the replay finds the difference, and the message shows both
    sides.
    """
    build, says = LIES[name]
    verdict = proof_of(store, build(script_of(granted(store, COUNT), params={"n": 3})))
    assert not verdict.ok
    assert says in verdict.message


def test_a_careless_edit_is_found_before_anything_runs(store: Store) -> None:
    """The chain shows it, with the line."""
    placed = place_script(store, granted(store, COUNT), counted(store))
    placed.path.write_bytes(placed.path.read_bytes().replace(b'"outcome":2', b'"outcome":5'))
    verdict = proof(store, placed)
    assert (verdict.ok, verdict.mechanism) == (False, "none")
    assert verdict.message.startswith("damage at line 5: ")


def test_a_sealed_line_that_is_no_canonical_json_is_found(store: Store) -> None:
    """Going on with a journal trusts the chain; proving it parses every line, those that no replay
    would look at too.
    """
    script = counted(store).add(b'{"control":"note","text":"a","text":"b","timestamp":1')
    verdict = proof_of(store, script)
    assert not verdict.ok
    assert "duplicate keys" in verdict.message


def test_a_torn_tail_is_cut_before_the_proof(store: Store) -> None:
    """The verdict is about the whole lines, and names the file with the rest."""
    placed = place_script(store, granted(store, COUNT), counted(store))
    whole = placed.path.read_bytes()
    placed.path.write_bytes(whole[:-1])
    verdict = proof(store, placed)
    assert (verdict.ok, verdict.steps) == (True, 2)
    assert verdict.kept_aside is not None
    assert placed.path.read_bytes() + verdict.kept_aside.read_bytes() == whole[:-1]


def test_another_start_is_found(store: Store) -> None:
    """The parameters belong to what is proved."""
    script = script_of(granted(store, COUNT), params={"n": 2}).done(1).done(2).done(3)
    assert not proof_of(store, script).ok


def test_a_trusted_bundle_s_effects_are_not_proved(store: Store) -> None:
    """The chain of a trusted bundle's thread is checked; the message says that its effects are not
    proved.
    """
    text = source(
        "trusty", "    yield {'null': {'value': 1}}\n", policy={"null": {}, "trusted": True}
    )
    verdict = proof_of(store, script_of(granted(store, text)).done(1), text)
    assert verdict.ok
    assert "not replayed" in verdict.message


def test_a_bundle_that_hangs_is_an_answer_not_a_hang(store: Store) -> None:
    """The deadline passes; the verdict says so."""
    text = source("hang", "    while True:\n        pass\n    yield {}\n")
    placed = place_script(store, granted(store, text), script_of(granted(store, text)).done(1))
    verdict = verify(
        store, placed.bundle.hash, placed.thread, placed.path, prefer="auto", deadline_s=0.2
    )
    assert not verdict.ok
    assert "deadline" in verdict.message


def test_the_order_of_an_output_s_keys_is_not_its_meaning(store: Store) -> None:
    """The journal keeps role, content, meta in its own order, whatever order the bundle used; meta
    keeps the bundle's.
    """
    plan = [{"output": {"meta": {"z": 1, "a": 2}, "role": "r", "content": "c"}}, {"null": {}}]
    script = (
        script_of(granted(store, PLANNED), params={"plan": plan})
        .output(1, "r", "c", z=1, a=2)
        .done(2, {"null": {}}, outcome=None)
    )
    verdict = proof_of(store, script, PLANNED)
    assert verdict.ok, verdict.message
    assert json.loads(script.sealed[1])["meta"] == {"z": 1, "a": 2}


TWO = {"all": {"effects": [{"null": {"value": 1}}, {"null": {"value": 2}}]}}
STOPPED = {
    "all": {
        "effects": [{"null": {"fail": "no"}}, {"null": {"value": 2}}],
        "onFailure": "stop",
        "limit": 1,
    }
}
NOT_BEGUN = {"error": {"kind": "not-begun", "message": "an effect beside it failed first"}}
FAILED = {"error": {"kind": "null", "message": "no"}}
ONE, OTHER = {"outcome": 1}, {"outcome": 2}
LINES: dict[str, tuple[object, list[dict[str, object]], list[object], str]] = {
    "both parts": (TWO, [{"sub": 0, **ONE}, {"sub": 1, **OTHER}], [ONE, OTHER], ""),
    "in another order": (TWO, [{"sub": 1, **OTHER}, {"sub": 0, **ONE}], [ONE, OTHER], ""),
    "a failed part": (TWO, [{"sub": 0, **ONE}, {"sub": 1, **FAILED}], [ONE, FAILED], ""),
    "a part that was not begun": (STOPPED, [{"sub": 0, **FAILED}], [FAILED, NOT_BEGUN], ""),
    "another result": (
        TWO,
        [{"sub": 0, **ONE}, {"sub": 1, **OTHER}],
        [ONE, ONE],
        "the line of part 1 holds {'outcome': 2}",
    ),
    "a result without a line": (
        TWO,
        [{"sub": 0, **ONE}],
        [ONE, OTHER],
        "for part 1, which has no line",
    ),
    "not begun, though nothing stops it": (
        TWO,
        [{"sub": 0, **ONE}],
        [ONE, NOT_BEGUN],
        "for part 1, which has no line",
    ),
    "two lines of one part": (
        TWO,
        [{"sub": 0, **ONE}, {"sub": 0, **OTHER}],
        [ONE, OTHER],
        "line of part 0, a second one",
    ),
    "a line of no part": (
        TWO,
        [{"sub": 0, **ONE}, {"sub": 5, **OTHER}],
        [ONE, OTHER],
        "line of part 5",
    ),
    "a result too few": (TWO, [{"sub": 0, **ONE}], [ONE], "it has 2 parts"),
}


@pytest.mark.parametrize("name", LINES)
def test_the_outcome_of_an_all_is_what_the_lines_of_its_parts_say(name: str, store: Store) -> None:
    """A sealed journal whose `all` has other results than its parts' lines is no proof."""
    effect, parts, results, problem = LINES[name]
    text = PLANNED.replace(b"'policy': {'null': {}}", b"'policy': {'null': {}, 'all': {}}")
    script = script_of(granted(store, text), params={"plan": [effect]}).intent(1, effect)
    for part in parts:
        script.step(1, **part)
    script.step(1, outcome=results).end(
        "completed", result={"success": True, "message": "1", "data": [results]}
    )
    verdict = proof_of(store, script, text)
    assert verdict.ok == (not problem)
    assert problem in verdict.message
