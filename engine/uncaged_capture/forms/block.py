"""Capture of a block flow: the calls of flows that an agent made, in order, as a list of blocks."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from uncaged_bundles.errors import RefusedError

from ..linking import JoinedText, Linked, LinkedCall, ParameterValue, ResultReference
from ..steps import FlowSteps
from ..wording import NUMBERS, wording_of
from .form import default_of
from .task import CapturedTask, variables_of

__all__ = ["captured_block"]

_WITH_TASK = "; capture it with --as task"


def captured_block(steps: FlowSteps, name: str) -> CapturedTask:
    """Return the block flow of an agent's calls of flows.

    Raises:
        RefusedError: blocks cannot say what a call needs; the message says why.
    """
    names = variables_of(steps, reserved=[one.name for one in steps.parameters])
    models = {call.ran.number for call in steps.calls if call.ran.kind == "llm"}
    blocks: list[dict[str, object]] = []
    lines: list[str] = []
    for step, call in enumerate(steps.calls, 1):
        writer = _Writer(step, names, models)
        config = writer.config(call)
        kind = "llmInstruction" if call.ran.kind == "llm" else "flow"
        blocks.append(
            {"type": kind, "config": {**config, "resultVariable": names[call.ran.number]}}
        )
        shown = json.dumps(config, ensure_ascii=False)
        lines.append(f"{names[call.ran.number]} = {kind} {shown}")
    if steps.result != steps.calls[-1].ran.number:
        blocks.append({"type": "code", "config": {"expression": names[steps.result]}})
        lines.append(f"result: {names[steps.result]}")
    recipe = {
        "active": True,
        "steps": [{"type": "start", "config": {"variables": _variables(steps)}}, *blocks],
    }
    wording = wording_of(name, steps.prompt, steps.parameters)
    return CapturedTask(wording=wording, recipe=recipe, flow_steps=steps, steps=tuple(lines))


def _variables(steps: FlowSteps) -> list[dict[str, object]]:
    return [
        {
            "name": one.name,
            "value": default_of(one),
            "type": one.type if one.type in NUMBERS else "string",
            "description": f"The agent used {one.value}." if not one.secret else "A secret.",
        }
        for one in steps.parameters
    ]


class _Writer:
    """Writes the linked values of one step with `${path}` for references."""

    def __init__(self, step: int, names: Mapping[int, str], models: Collection[int]) -> None:
        self._step = step
        self._names = names
        self._models = models

    def config(self, call: LinkedCall) -> dict[str, object]:
        """Return the settings of the block for a call."""
        if call.ran.kind == "llm":
            if strange := sorted(set(call.params) - {"model"}):
                raise self._refusal(
                    f"gives a model its {' and '.join(strange)}, which no block does"
                )
            return {"instruction": self.text(call.prompt), **call.params}
        return {
            "flow": call.ran.flow,
            **({"prompt": self.text(call.prompt)} if call.ran.prompt else {}),
            "params": {key: self.value(value) for key, value in call.params.items()},
        }

    def value(self, value: Linked) -> object:
        """Return a value as blocks have it; a path alone keeps the type of what it names."""
        match value:
            case ResultReference():
                return f"${{{self._path(value)}}}"
            case ParameterValue(parameter=parameter, as_text=as_text):
                if as_text and parameter.type in NUMBERS:
                    raise self._refusal(f"needs {parameter.name} as text, and blocks keep a number")
                return f"${{{parameter.name}}}"
            case Mapping():
                return {key: self.value(part) for key, part in value.items()}
            case list():
                return [self.value(part) for part in value]
            case str() | JoinedText():
                return self.text(value)
            case _:
                return value

    def text(self, value: Linked) -> str:
        """Return a text with the paths in it."""
        match value:
            case str():
                return self._literal(value)
            case JoinedText(pieces=pieces):
                return "".join(
                    self._literal(piece) if isinstance(piece, str) else self._inside(piece)
                    for piece in pieces
                )
            case ResultReference() | ParameterValue():
                return self._inside(value)
            case _:
                raise self._refusal("has a prompt that is no text")

    def _inside(self, piece: ResultReference | ParameterValue) -> str:
        if isinstance(piece, ParameterValue):
            return f"${{{piece.parameter.name}}}"
        return f"${{{self._path(piece)}}}"

    def _literal(self, text: str) -> str:
        if "${" in text:
            raise self._refusal("has '${' in a text, which blocks would replace")
        return text

    def _path(self, reference: ResultReference) -> str:
        if reference.number in self._models:
            if reference.where == "text":
                return self._names[reference.number]
            raise self._refusal("uses data of a model's answer, and blocks keep its text only")
        if reference.where == "text":
            raise self._refusal(
                "uses the message of an earlier step, and blocks keep its data only"
            )
        parts = [
            f"[{key}]"
            if isinstance(key, int)
            else f".{key}"
            if key.isascii() and key.isidentifier()
            else f"[{json.dumps(key, ensure_ascii=False)}]"
            for key in reference.path
        ]
        if any("}" in part for part in parts):
            raise self._refusal("uses a value whose name has a brace")
        return self._names[reference.number] + "".join(parts)

    def _refusal(self, why: str) -> RefusedError:
        return RefusedError(f"step {self._step} {why}{_WITH_TASK}")
