"""Errors in the records of a failed thread: kinds in a word, and texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from uncaged_browser.expectations import described
from uncaged_bundles.examples import Example

__all__ = ["DRIFT", "cause_of", "problem_in", "wrong_example"]

DRIFT = "drift"
"""Kind of error of a browser step whose page is not the expected one."""
RAISED = re.compile(r": (?P<type>[A-Za-z_]\w*): ")
"""In the error of a task: the type of the exception that its script raised."""
NEXT_STEP = re.compile(r"[;\n] ?\w+ it with 'uncaged-workflow edit")
"""What a driver adds to the error of its flow."""


def problem_in(kind: str, outcome: Mapping[str, Any]) -> tuple[str, str]:
    """Return the kind of error of an outcome, and its message; "" and "" for one that is none."""
    match kind:
        case "browser" if outcome.get("drift"):
            return DRIFT, f"the page differs: {described(outcome['drift'])}"
        case "http":
            status = outcome.get("status")
            if isinstance(status, int) and status >= 400:
                text = outcome.get("text") or outcome.get("json") or ""
                return f"status {status}", f"HTTP {status}: {str(text)[:2000]}"
        case "script" if outcome.get("success") is False:
            refused = outcome.get("refused", [])
            text = "\n".join([str(outcome.get("stderr", "")), *refused]).strip()
            word = "timeout" if outcome.get("timedOut") else f"exit {outcome.get('exitCode')}"
            return "refused" if refused else word, text
        case "flow" if outcome.get("success") is False:
            return "flow", str(outcome.get("message", ""))
    return "", ""


def cause_of(end: Mapping[str, Any]) -> tuple[str, str]:
    """Return kind and text of the error with which a thread ended."""
    error = end.get("error")
    if isinstance(error, Mapping):
        return str(error.get("type") or error.get("kind", "error")), str(error.get("message", ""))
    result = end.get("result")
    if not isinstance(result, Mapping):
        return "result", ""
    stated = result.get("error")
    text = stated if isinstance(stated, str) and stated else str(result.get("message", ""))
    raised = RAISED.search(text)
    return (
        raised["type"] if raised is not None else "result",
        NEXT_STEP.split(text)[0],
    )


def wrong_example(examples: object, start: Mapping[str, Any], end: Mapping[str, Any]) -> str | None:
    """Return how the result of a thread with success differs from what the example with its
    sentence and values expects; None if it does not.

    Args:
        start, end: records of the thread.
    """
    parameters, result = start.get("parameters", {}), end.get("result")
    if not isinstance(examples, list) or not isinstance(result, Mapping):
        return None
    if result.get("success", True) is False:
        return None
    for index, raw in enumerate(examples):
        example = Example.read(raw, ("examples", index))
        params = parameters.get("params", {})
        if example.sentence == parameters.get("prompt") and example.params is not None:
            difference = example.difference({"message": "", **result, "success": True})
            if {**params, **example.params} == params and difference is not None:
                return f"the example {example.sentence!r} fails: {difference}"
    return None
