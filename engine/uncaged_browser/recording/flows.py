"""Recordings of web flows, for export: their steps with the default values of the parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from uncaged_bundles import shapes
from uncaged_bundles.builders.recipes.flows import RecipeFlow, WebFlow
from uncaged_bundles.carried.web import fill
from uncaged_bundles.errors import RefusedError

from ..operations import OPERATIONS, Navigate, Open, read_operation
from .exports import to_playwright_python, to_recorder_json
from .recipe import ORIGIN
from .recording import Recording

__all__ = ["EXPORTS", "ExportFormat", "recording_of"]

ExportFormat = Literal["recorder", "playwright", "recording"]
EXPORTS: Mapping[ExportFormat, Callable[[Recording], str]] = {
    "recorder": to_recorder_json,
    "playwright": to_playwright_python,
    "recording": Recording.text,
}
"""recorder: JSON of the DevTools Recorder. playwright: a Python script. recording: the JSON of this
project.
"""


def recording_of(flow: RecipeFlow | None, name: str) -> Recording:
    """Return the recording that a web flow of steps plays.

    Raises:
        RefusedError: the flow has no steps, a step is none of a recording, or a parameter has no
            default value.
    """
    if not isinstance(flow, WebFlow) or not flow.steps:
        raise RefusedError(f"{name!r} is no web flow of steps, so it is no recording")
    for number, step in enumerate(flow.steps, 1):
        if step.get("do") not in OPERATIONS:
            raise RefusedError(
                f"step {number} of {name!r} ({step.get('do')}) is none of a recording: it searches, or asks a model"
            )
    defaults: dict[str, Any] = {}
    properties: Mapping[str, Any] = shapes.mapping(flow.parameters.get("properties", {}), (name,))
    for parameter, schema in properties.items():
        if "default" not in schema and f"${{{parameter}}}" in str(flow.steps):
            raise RefusedError(
                f"parameter {parameter!r} of {name!r} has no default value, so a recording would lack it; set one:"
                f" uncaged-workflow edit {name} --set-parameter {parameter}.default=VALUE"
            )
        defaults[parameter] = schema.get("default")
    bodies = [fill("", {**step, "keep": None}, defaults) for step in flow.steps]
    steps = tuple(
        read_operation({key: value for key, value in body.items() if key != "keep"})
        for body in bodies
    )
    url = next((step.url for step in steps if isinstance(step, Navigate | Open)), "about:blank")
    hosts = shapes.texts(flow.scope.get("domains", flow.scope.get("hosts", [])), (name, "scope"))
    texts = {
        key: value
        for key, value in defaults.items()
        if key != ORIGIN and isinstance(value, str) and value
    }
    return Recording(
        name=name,
        url=url,
        steps=steps,
        hosts=tuple(hosts),
        origin_parameter=ORIGIN in properties,
        parameters=texts,
    )
