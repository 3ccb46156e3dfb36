"""Labels of browser steps in the lines of a run, in `thread show`, and beside other steps."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

import pytest
from testbed.bundles import source
from uncaged_cli.display.step_labels import add_record, open_label
from uncaged_engine.threads.timeline import Row, Timeline

Command = Callable[..., subprocess.CompletedProcess[str]]
CLICK = {"browser": {"do": "click", "target": [{"role": "button", "name": "Save\u202e"}]}}
OPEN = {"browser": {"do": "open", "url": "http://shop.test/cart"}}
VISIT = f"""
    try:
        yield {CLICK!r}
    except Exception:
        pass
    yield {{"null": {{"value": 1}}}}
    yield {OPEN!r}
"""
WORDS = ['click button "Save"', "null", "open http://shop.test/cart"]


def row_of(*records: dict[str, object]) -> Row:
    """Return the row that the last record completes."""
    timeline = Timeline()
    row = None
    for number, record in enumerate(records):
        row = add_record(timeline, {"timestamp": 1_000 + number, **record})
    assert row is not None
    return row


@pytest.mark.slow
def test_a_run_says_what_its_browser_steps_do(
    command: Command, flow: Callable[[str, str], str]
) -> None:
    """The policy refuses the browser, so each of its steps fails: a failed step says what it was
    for, in the run and afterwards, without marks that turn the line round; another step has the
    name of its kind.
    """
    flow("visit", source("visit", VISIT).decode())
    run = command("run", "visit")
    assert run.returncode == 3, run.stderr
    for shown in (run.stdout, command("thread", "show", "latest").stdout):
        rows = [line for line in shown.splitlines() if re.match(r" {3}\d  ", line)]
        assert [row.split("  ")[2] for row in rows] == WORDS
        assert ["failed: policy:" in row for row in rows] == [True, False, True]


def test_a_finished_step_and_one_in_flight_are_labelled_alike() -> None:
    """A finished step has the words that it had in flight; a step of several parts has its kind."""
    intent = {"seq": 1, "intent": CLICK}
    assert row_of(intent, {"seq": 1, "outcome": {"ok": True}}).label == WORDS[0]
    timeline = Timeline()
    add_record(timeline, {"timestamp": 1_000, **intent})
    assert timeline.open is not None
    assert open_label(timeline.open) == WORDS[0]
    both = {"seq": 1, "intent": {"all": [CLICK, OPEN]}}
    add_record(timeline := Timeline(), {"timestamp": 1_000, **both})
    assert timeline.open is not None
    assert open_label(timeline.open) == "all"


def test_a_person_s_word_keeps_its_label() -> None:
    """A pause during a step, and the end of the attempt, are not what the step does."""
    intent = {"seq": 1, "intent": CLICK}
    assert row_of(intent, {"control": "pause"}).label == "pause"
    assert row_of(intent, {"seq": 1, "void": "environment"}).label == "browser"


def test_only_a_step_of_the_browser_has_its_words() -> None:
    """The fields of another effect may have the names of those of the browser."""
    timeline = Timeline()
    add_record(timeline, {"timestamp": 1_000, "seq": 1, "intent": {"http": CLICK["browser"]}})
    assert timeline.open is not None
    assert open_label(timeline.open) == "http"
