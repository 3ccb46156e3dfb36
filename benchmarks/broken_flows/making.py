"""Recipes of flows that break, and choices that follow from a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from .case import Recipe

__all__ = ["NAMES", "drawn", "parameter", "script", "task"]

NAMES = (
    *("anchor", "bridge", "candle", "drum", "easel", "flute", "gadget", "hammer", "inkwell"),
    *("jacket", "kettle", "ladder", "mirror", "needle", "oar", "pillow", "quiver", "ribbon"),
    *("saddle", "teapot", "urn", "vase", "whistle", "yoke", "zither"),
)


def drawn(seed: int, name: str) -> Random:
    """Return the choices of a case."""
    return Random(f"{seed} {name}")  # noqa: S311 - no secrets


def parameter(name: str, kind: str = "string", **more: object) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "required": "default" not in more,
        "description": name,
        **more,
    }


def script(
    name: str,
    language: str,
    body: str,
    parameters: Sequence[Mapping[str, Any]],
    *,
    commands: Sequence[str] = (),
    paths: Sequence[str] = (),
    seconds: int = 20,
    examples: Sequence[Mapping[str, Any]] = (),
) -> Recipe:
    """Return the recipe of a script flow."""
    return {
        "version": 1,
        "actionName": name,
        "description": f"Flow {name}.",
        "parameters": list(parameters),
        "script": {"language": language, "body": body, "expectedOutputFormat": "text"},
        "grammarPatterns": [],
        "examples": list(examples),
        "sandbox": {
            "allowedCommands": list(commands),
            "allowedPaths": list(paths),
            "maxExecutionTime": seconds,
            "networkAccess": False,
        },
    }


def task(
    name: str, body: str, parameters: Sequence[Mapping[str, Any]], hosts: Sequence[str]
) -> Recipe:
    """Return the recipe of a task flow that asks HTTP services. body: lines of `execute`."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return {
        "version": 1,
        "name": name,
        "description": f"Flow {name}.",
        "parameters": list(parameters),
        "script": f"async def execute(api, params):\n{lines}",
        "grammarPatterns": [],
        "policy": {"http": {"hosts": list(hosts), "private": True}},
    }
