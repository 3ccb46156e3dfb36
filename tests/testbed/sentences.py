"""Flows with patterns in a store, and an interpreter over them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from uncaged_dispatcher.calls import Interpretation
from uncaged_dispatcher.readings.context import SentenceContext
from uncaged_dispatcher.readings.interpreter import Interpreter
from uncaged_engine.api import Engine

from . import bundles

ECHO = """
    return {"success": True, "message": str(input["params"]), "data": input["params"]}
    yield
"""


def parameters(*required: str, **properties: Mapping[str, object]) -> dict[str, object]:
    """Return the schema of parameters; each is a text unless it says otherwise."""
    return {
        "type": "object",
        "properties": {name: dict(part) or {"type": "string"} for name, part in properties.items()},
        "required": list(required),
        "additionalProperties": False,
    }


def flow_source(
    name: str, *patterns: str, schema: Mapping[str, object] | None = None, **descriptor: object
) -> bytes:
    """Return the source of a pure flow that returns its parameters."""
    fields = {"patterns": list(patterns), "parameters": dict(schema or {}), "policy": {}}
    return bundles.source(name, ECHO, head="", **fields, **descriptor)


def add_flow(
    engine: Engine,
    name: str,
    *patterns: str,
    schema: Mapping[str, object] | None = None,
    **descriptor: object,
) -> None:
    """Add a pure flow with these patterns."""
    source = flow_source(name, *patterns, schema=schema, **descriptor)
    engine.add(name, source, accept=lambda _: True)


def called(
    interpreter: Interpreter, sentence: str, directory: Path | None = None
) -> list[tuple[str, dict[str, object]]]:
    """Return the calls of a sentence that has one reading."""
    context = SentenceContext(directory=directory or Path("/"))
    found = interpreter.interpret(sentence, context=context)
    assert isinstance(found, Interpretation), found
    return [(call.flow, dict(call.params)) for call in found.calls]
