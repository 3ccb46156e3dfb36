"""Capture of a web flow: the recording in a thread's trace, with the values of the prompt that
recur in it as parameters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as replace_step
from typing import Any

from uncaged_browser.healing.lexicon import actions_of
from uncaged_browser.operations import Click, Fill, Operation, SetChecked, Type
from uncaged_browser.recording.recording import Recording, read_recording
from uncaged_browser.secrets import name_of_secret
from uncaged_bundles.records import dataclass, replace
from uncaged_engine.services.threads import StepTrace

from ..traces import only_step
from ..values import Parameter, kind_of, parameters_of
from ..wording import Wording, worded, wording_of

__all__ = ["CapturedWeb", "captured_web", "parameters_from", "recording_of"]


def recording_of(
    traces: Sequence[StepTrace], name: str, thread: str, step: int | None = None
) -> Recording:
    """Return what was done in the browser, as a recording.

    Args:
        step: the role step; None if only one used a browser.
    Raises:
        NotFoundError: no step, or not this one, used a browser.
        UsageError: several steps did, and none is named.
        RecordingError: it cannot be a flow, such as one of fewer than two actions.
    """
    trace = only_step(
        traces,
        lambda one: "recording" in one.notes,
        step=step,
        thread=thread,
        did="used a browser",
        did_not="did nothing in a browser",
    )
    recording = read_recording(json.dumps(trace.notes["recording"]))
    steps = _with_secrets(recording.steps, trace.calls)
    recording = replace(recording, name=name, steps=steps)
    recording.check_length()
    return recording


def _with_secrets(
    steps: Sequence[Operation], calls: Sequence[Mapping[str, Any]]
) -> tuple[Operation, ...]:
    """Return the steps with the secrets that the agent named; the recorder knows their fields."""
    texts = [
        str(call["arguments"].get("text", ""))
        for call in calls
        if not call["failed"] and isinstance(call["arguments"], Mapping)
    ]
    named = [text for text in texts if name_of_secret(text) is not None]
    noted = [
        index
        for index, step in enumerate(steps)
        if isinstance(step, Fill | Type) and name_of_secret(step.text) is not None
    ]
    changed = list(steps)
    if len(named) == len(noted):
        for index, text in zip(noted, named, strict=True):
            changed[index] = replace_step(changed[index], text=text)  # type: ignore[call-arg]
    return tuple(changed)


def parameters_from(recording: Recording, prompt: str) -> dict[str, str]:
    """Return the values that were typed or selected and recur in the prompt, by the names of their
    fields, and those by which elements were chosen; secrets are parameters always.
    """
    words = " ".join(prompt.casefold().split())
    found = {
        name: value
        for name, value in recording.propose_parameters().items()
        if name_of_secret(value) is not None or _recurs(value, words)
    }
    for name, value in _choices(recording, prompt, list(found.values())):
        free, number = name, 1
        while free in found:
            number += 1
            free = f"{name}_{number}"
        found[free] = value
    return found


def _choices(recording: Recording, prompt: str, known: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield name and value of what the prompt says of the elements that were clicked or checked:
    the link `Raven`, of "Open the guide Raven". A word for an action is no value, nor is the first
    one of a sentence, unless it is all that the element says.

    Args:
        known: values that are parameters already.
    """
    names = [
        one.name
        for step in recording.steps
        if isinstance(step, Click | SetChecked)
        for one in step.target or ()
        if one.way == "role" and one.name
    ]
    for value in known:
        names = [re.sub(re.escape(value), " ", name, flags=re.IGNORECASE) for name in names]
    in_any_case = [*names, *map(str.casefold, names)]
    for one in parameters_of(in_any_case, prompt):
        whole = one.value.casefold() in in_any_case
        named = not one.value[0].islower() and re.search(
            rf"(?<![.!?:])\s[\"'“`«]?{re.escape(one.value)}(?!\w)", prompt
        )
        if not one.secret and not actions_of(one.value) and (whole or named):
            yield one.name.rstrip("0123456789"), one.value


def _recurs(value: str, words: str) -> bool:
    wanted = re.escape(" ".join(value.casefold().split()))
    return bool(wanted) and re.search(rf"(?<!\w){wanted}(?!\w)", words) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedWeb:
    """A web flow made of a recording. parameters: recorded value by name. core: its recipe without
    its wording.
    """

    recording: Recording
    parameters: Mapping[str, str]
    wording: Wording
    core: Mapping[str, Any]

    @property
    def recipe(self) -> dict[str, Any]:
        return worded(self.core, self.wording)

    @property
    def listed(self) -> tuple[Parameter, ...]:
        """The parameters as those of other forms."""
        return _listed(self.parameters)


def captured_web(recording: Recording, parameters: Mapping[str, str], prompt: str) -> CapturedWeb:
    """Return the web flow of a recording, described by the prompt of its thread."""
    core: dict[str, Any] = recording.to_recipe(recording.name, parameters)
    declared: Mapping[str, Mapping[str, Any]] = core["parameters"]
    return CapturedWeb(
        recording=recording,
        parameters=parameters,
        wording=wording_of(recording.name, prompt, _as_in(prompt, _listed(parameters))),
        core={
            **core,
            "parameters": {name: _typed(fields) for name, fields in declared.items()},
            "source": {"type": "goal", "originUrl": recording.url},
        },
    )


def _listed(parameters: Mapping[str, str]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(name=name, value=value, type=kind_of(value), secret=name_of_secret(value) or "")
        for name, value in parameters.items()
    )


def _as_in(prompt: str, parameters: Sequence[Parameter]) -> list[Parameter]:
    """Return the parameters with their values as the prompt writes them, in capitals or not."""
    found = []
    for one in parameters:
        words = r"\s+".join(map(re.escape, one.value.split()))
        written = re.search(rf"(?<!\w){words}(?!\w)", prompt, re.IGNORECASE) if words else None
        value = " ".join(written[0].split()) if written is not None else one.value
        found.append(one if one.secret else replace(one, value=value))
    return found


def _typed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a parameter with its type by the form of its value."""
    value = fields["default"]
    match kind_of(value):
        case "integer":
            return {**fields, "type": "integer", "default": int(value)}
        case "number":
            return {**fields, "type": "number", "default": float(value)}
        case _:
            return dict(fields)
