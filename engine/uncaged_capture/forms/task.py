"""Capture of a task flow: the calls of flows that an agent made, in order, as a Python script."""

from __future__ import annotations

import json
import keyword
from collections.abc import Iterable, Mapping
from typing import Any

from uncaged_bundles.builders.recipes.recipe import parse_recipe
from uncaged_bundles.builders.recipes.recipe_flow import build_flow
from uncaged_bundles.errors import RefusedError
from uncaged_bundles.records import dataclass, replace
from uncaged_bundles.validation.validate import read_bundle
from uncaged_engine.api import Engine
from uncaged_engine.services.registry import KNOWN
from uncaged_engine.services.trials import Decisions

from ..candidate import MayAct
from ..linking import JoinedText, Linked, LinkedCall, ParameterValue, ResultReference
from ..other_values import OtherRun, run_with
from ..proving import TrialProof, prove
from ..steps import FlowSteps
from ..values import Parameter
from ..wording import NUMBERS, Wording, worded, wording_of
from .form import default_of

__all__ = ["CapturedTask", "captured_task", "variables_of"]

_METHODS = {"flow": "call_action", "llm": "query_llm"}
_TAKEN = frozenset({"api", "params", "print", "execute", "str"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedTask:
    """A task flow or a block flow made of steps. See `FlowCandidate`.

    recipe: its JSON data without its wording. flow_steps: what it was made of.
    """

    wording: Wording
    recipe: Mapping[str, Any]
    flow_steps: FlowSteps
    steps: tuple[str, ...]

    @property
    def left_out(self) -> tuple[str, ...]:
        return self.flow_steps.left_out

    @property
    def notes(self) -> tuple[str, ...]:
        return self.flow_steps.notes

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.flow_steps.parameters

    @property
    def definition(self) -> str:
        return ""

    def source(self, remark: str = "") -> bytes:
        return build_flow(parse_recipe(worded(self.recipe, self.wording, remark)), KNOWN).source

    def reworded(self, wording: Wording) -> CapturedTask:
        return replace(self, wording=wording)

    def prove(self, engine: Engine, may_act: MayAct) -> TrialProof:
        return prove(
            engine,
            read_bundle(self.source(), KNOWN),
            compare=self.flow_steps.differences,
            prompt=self.flow_steps.prompt,
            params=self._recorded,
            decisions=Decisions(known=self.flow_steps.known, allow=may_act),
        )

    def run_with(self, engine: Engine, changed: Mapping[str, object]) -> OtherRun:
        return run_with(engine, read_bundle(self.source(), KNOWN), self._recorded, changed)

    @property
    def _recorded(self) -> dict[str, object]:
        return {one.name: default_of(one) for one in self.parameters}


def captured_task(steps: FlowSteps, name: str) -> CapturedTask:
    """Return the task flow of an agent's calls of flows.

    Raises:
        RefusedError: there is one call, and the agent said no more than its result.
    """
    if len(steps.calls) < 2 and steps.answer is None:
        raise RefusedError(
            f"one call of a flow is no task: run it, uncaged-workflow run {steps.calls[0].ran.flow}"
        )
    recipe = {
        "parameters": _recipe_parameters(steps.parameters),
        "script": _script(steps),
        "policy": _policy(steps),
    }
    names = variables_of(steps)
    lines = tuple(_line(call, names) for call in steps.calls)
    wording = wording_of(name, steps.prompt, steps.parameters)
    return CapturedTask(wording=wording, recipe=recipe, flow_steps=steps, steps=lines)


def _policy(steps: FlowSteps) -> dict[str, object]:
    """Return the policy that names the called flows and models, and nothing else."""
    flows = sorted({call.ran.flow for call in steps.calls if call.ran.kind == "flow"})
    asked = [call.ran.params.get("model") for call in steps.calls if call.ran.kind == "llm"]
    named = sorted({str(model) for model in asked if model is not None})
    return {
        **({"flow": {"names": flows}} if flows else {}),
        **({"llm": {"models": named} if None not in asked else {}} if asked else {}),
    }


def _recipe_parameters(parameters: tuple[Parameter, ...]) -> list[dict[str, object]]:
    """Return parameters as recipes declare them, with the recorded values as defaults."""
    return [
        {
            "name": one.name,
            "type": one.type if one.type in NUMBERS else "string",
            "required": False,
            "description": f"The agent used {one.value}." if not one.secret else "A secret.",
            "default": default_of(one),
        }
        for one in parameters
    ]


def _script(steps: FlowSteps) -> str:
    names = variables_of(steps)
    lines = ["async def execute(api, params):"]
    for call in steps.calls:
        name = names[call.ran.number]
        lines += [
            f"    {name} = await api.{_METHODS[call.ran.kind]}({_arguments(call, names)})",
            f"    if {name}.error:",
            f'        return {{"success": False, "error": {name}.error}}',
        ]
    last = names[steps.result]
    message = f"{last}.text" if steps.answer is None else _expression(steps.answer, names)
    lines.append(f'    return {{"success": True, "message": {message}, "data": {last}.data}}')
    return "\n".join(lines) + "\n"


def _arguments(call: LinkedCall, names: Mapping[int, str]) -> str:
    if call.ran.kind == "llm":
        settings = (f"{key}={_expression(value, names)}" for key, value in call.params.items())
        return ", ".join((_expression(call.prompt, names), *settings))
    parts = [_literal(call.ran.flow)]
    if call.ran.prompt:
        parts.append(_expression(call.prompt, names))
    if call.params:
        parts.append(f"params={_expression(dict(call.params), names)}")
    return ", ".join(parts)


def variables_of(steps: FlowSteps, reserved: Iterable[str] = ()) -> dict[int, str]:
    """Return the name of a variable for the result of each call.

    Args:
        reserved: names of other variables.
    """
    used = {*reserved}
    found: dict[int, str] = {}
    for call in steps.calls:
        base = "".join(letter if letter.isalnum() else "_" for letter in call.ran.flow.lower())
        if not base.isidentifier() or keyword.iskeyword(base) or base in _TAKEN or base[0] == "_":
            base = f"flow_{base}"
        name, number = base, 1
        while name in used:
            number += 1
            name = f"{base}_{number}"
        found[call.ran.number] = name
        used.add(name)
    return found


def _expression(value: Linked, names: Mapping[int, str]) -> str:
    """Return a linked value as a Python expression. Texts are literals: no value becomes code."""
    match value:
        case ResultReference(number=number, where=where, path=path):
            return f"{names[number]}.{where}" + "".join(f"[{_literal(key)}]" for key in path)
        case ParameterValue(parameter=parameter, as_text=as_text):
            read = f"params[{_literal(parameter.name)}]"
            return f"str({read})" if as_text and parameter.type in NUMBERS else read
        case JoinedText(pieces=pieces):
            return " + ".join(
                _literal(piece) if isinstance(piece, str) else _as_text(piece, names)
                for piece in pieces
            )
        case Mapping():
            inner = (f"{_literal(key)}: {_expression(part, names)}" for key, part in value.items())
            return f"{{{', '.join(inner)}}}"
        case list():
            return f"[{', '.join(_expression(part, names) for part in value)}]"
        case _:
            return _literal(value)


def _as_text(piece: ResultReference | ParameterValue, names: Mapping[int, str]) -> str:
    read = _expression(piece, names)
    return read if read.startswith("str(") else f"str({read})"


def _literal(value: object) -> str:
    """Return JSON data as a Python literal."""
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        return text if text.isprintable() else ascii(value)
    return repr(value)


def _line(call: LinkedCall, names: Mapping[int, str]) -> str:
    """Return a step for a person."""
    kind = "model" if call.ran.kind == "llm" else "flow"
    return f"{names[call.ran.number]} = {kind} {_arguments(call, names)}"
