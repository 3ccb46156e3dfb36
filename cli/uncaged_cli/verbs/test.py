"""The verb `test`: runs the examples of a flow as threads and checks their results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click
from uncaged_bundles.clean import shorten
from uncaged_bundles.errors import UncagedError, without_thread

from ..display import json_output
from ..display.output import Styled, next_step, note, result
from ..inputs.options import flow_argument, json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_bundles.examples import Example
    from uncaged_engine.api import Engine

EXIT_FAILED = 1
SHOWN_COLUMNS = 200
COLOURS = {"passed": "green", "failed": "red", "ran": "yellow", "skipped": "yellow"}
NO_EXPECTATION = (
    "it ended as expected; its result was not checked, since the example has no `expect`"
)


@click.command()
@flow_argument
@shared_option
@json_option
def command(flow: str, as_json: bool) -> int:
    """Run the examples of FLOW and check their results.

    The `expect` of an example checks the result: equals, contains, matches or schema. An example
    without `expect` must only succeed (or fail, with `success: false`), and is listed as `ran`, not
    as `passed`.
    """
    from uncaged_bundles.shapes import ShapeError

    engine = open_engine()
    descriptor = engine.bundle(flow).descriptor
    listed = descriptor.raw.get("examples", [])
    outcomes: list[dict[str, object]] = []
    for index, raw in enumerate(listed if isinstance(listed, list) else []):
        try:
            outcomes.append(
                _outcome(engine, flow, raw, index, descriptor.parameters.get("required", []))
            )
        except ShapeError as exc:
            outcomes.append(
                {
                    "sentence": shorten(str(raw), SHOWN_COLUMNS),
                    "outcome": "failed",
                    "message": str(exc),
                }
            )
        if not as_json:
            show(outcomes[-1])
    if as_json:
        json_output.document({"flow": flow, "examples": outcomes})
    elif not outcomes:
        note(
            f"{flow} has no examples; a recipe lists them under `examples`, with sentence, params and expect"
        )
    else:
        result(_summary([str(one["outcome"]) for one in outcomes]))
    return EXIT_FAILED if any(one["outcome"] == "failed" for one in outcomes) else 0


def _outcome(
    engine: Engine, flow: str, raw: object, index: int, required: object
) -> dict[str, object]:
    from uncaged_bundles.examples import Example

    example = Example.read(raw, ("examples", index))
    if example.params is None and required:
        return {
            "sentence": example.sentence,
            "outcome": "skipped",
            "message": "it does not give the required parameters",
        }
    return run_example(engine, flow, example)


def run_example(engine: Engine, flow: str, example: Example) -> dict[str, object]:
    """Run one example to its end and compare the result with its expectation."""
    from uncaged_tools.flows import wait

    sentence: dict[str, object] = {"sentence": example.sentence}
    try:
        thread = engine.run(flow, prompt=example.sentence, params=example.params or {})
    except UncagedError as problem:
        return {**sentence, "outcome": "failed", "message": without_thread(problem)}
    called = wait(engine, thread)
    difference = example.difference(
        {"success": called.success, "message": called.message, "data": called.data}
    )
    ran = {**sentence, "status": called.status, "threadId": thread}
    if difference is not None:
        return {**ran, "outcome": "failed", "message": difference}
    if not example.expect:
        return {**ran, "outcome": "ran", "message": NO_EXPECTATION}
    return {**ran, "outcome": "passed", "message": called.message}


def show(outcome: Mapping[str, object]) -> None:
    """Print the line of an example, and why it did not pass."""
    word = str(outcome["outcome"])
    result(
        Styled(f"{word:7}", COLOURS[word]),
        "  ",
        shorten(json.dumps(outcome["sentence"], ensure_ascii=False), SHOWN_COLUMNS),
    )
    if word != "passed":
        note("         ", shorten(str(outcome["message"]), SHOWN_COLUMNS))
    if word == "failed" and "threadId" in outcome:
        next_step(f"uncaged-workflow fix {outcome['threadId']}")


def _summary(outcomes: list[str]) -> str:
    tried = [one for one in outcomes if one != "skipped"]
    parts = [f"{len(tried) - tried.count('failed')} of {len(tried)} examples did not fail"]
    if unchecked := tried.count("ran"):
        parts.append(f"{unchecked} without an expectation")
    if skipped := outcomes.count("skipped"):
        parts.append(f"{skipped} skipped")
    return ", ".join(parts)
