"""`test` runs the examples that a flow carries, each as a thread of its own, and says which of them went as they should."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import UncagedError

from ..display import jsonout
from ..display.clean import shorten
from ..display.screen import Styled, note, result
from ..given.arguments import flow_argument, json_option
from ..session import open_engine

if TYPE_CHECKING:
    from uncaged_engine.api import Engine

EXIT_FAILED = 1
SHOWN_COLUMNS = 200


@click.command()
@flow_argument
@json_option
def command(flow: str, as_json: bool) -> int:
    """Run the examples that FLOW carries, and compare what each comes to with what it should."""
    engine = open_engine()
    descriptor = engine.bundle(flow).descriptor
    listed = descriptor.raw.get("examples", [])
    required = descriptor.parameters.get("required", [])
    examples = (
        [example if isinstance(example, Mapping) else {"sentence": str(example)} for example in listed] if isinstance(listed, list) else []
    )
    told = []
    for example in examples:
        if "params" not in example and required:
            told.append({"sentence": example.get("sentence"), "outcome": "skipped", "message": "it does not say its parameters"})
        else:
            told.append(run_example(engine, flow, example))
        if not as_json:
            show(told[-1])
    failed = [one for one in told if one["outcome"] == "failed"]
    if as_json:
        jsonout.document({"flow": flow, "examples": told})
    elif not examples:
        note(f"{flow} carries no examples; a recipe lists them under examples: sentence and params")
    else:
        ran = [one for one in told if one["outcome"] != "skipped"]
        result(f"{len(ran) - len(failed)} of {len(ran)} examples went as they should" + _skipped(len(told) - len(ran)))
    return EXIT_FAILED if failed else 0


def run_example(engine: Engine, flow: str, example: Mapping[str, object]) -> dict[str, object]:
    """Run one example to its end and say what it came to."""
    from uncaged_engine.tools import wait

    params = example.get("params", {})
    sentence = example.get("sentence", "")
    told: dict[str, object] = {"sentence": sentence}
    try:
        thread = engine.run(flow, prompt=str(sentence), params=dict(params) if isinstance(params, Mapping) else {})
    except UncagedError as problem:
        return {**told, "outcome": "failed", "message": str(problem)}
    called = wait(engine, thread)
    outcome = "passed" if called.success == (example.get("success", True) is not False) else "failed"
    return {**told, "outcome": outcome, "status": called.status, "threadId": thread, "message": called.message}


def show(told: Mapping[str, object]) -> None:
    colours = {"passed": "green", "failed": "red", "skipped": "yellow"}
    outcome = str(told["outcome"])
    result(Styled(f"{outcome:7}", colours[outcome]), "  ", shorten(json.dumps(told["sentence"], ensure_ascii=False), SHOWN_COLUMNS))
    if outcome != "passed":
        note("         ", shorten(str(told["message"]), SHOWN_COLUMNS))


def _skipped(count: int) -> str:
    return f", {count} skipped" if count else ""
