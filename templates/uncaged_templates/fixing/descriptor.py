"""Descriptor of the flow `fix-flow`."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_roles.diagnostician import role as diagnostician
from uncaged_roles.fixer import role as fixer

__all__ = ["FIX"]

FIX: Mapping[str, object] = {
    "contract": 1,
    "name": "fix-flow",
    "displayName": "Fix a flow that failed",
    "description": "Makes a changed version of a flow that failed, proves it against the journals, and proposes it. "
    "It is started by the command fix, which makes the repository that it works in.",
    "kind": "workflow",
    "parameters": {
        "type": "object",
        "properties": {
            "thread": {"type": "string", "description": "The thread that failed."},
        },
        "required": ["thread"],
        "additionalProperties": False,
    },
    "roles": {
        one.name: {
            "description": one.description,
            "systemPrompt": one.system_prompt,
            "extractPrompt": one.extract_prompt,
            "schema": one.schema,
        }
        for one in (diagnostician, fixer)
    },
    "learn": False,
    "policy": {
        "role": {"workspace": "write", "tools": ["list", "read", "search", "edit", "write"]},
        "prove": {},
        "propose": {},
    },
}
