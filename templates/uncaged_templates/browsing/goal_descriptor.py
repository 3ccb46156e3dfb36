"""Descriptor of the flow `web-goal`."""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_roles.navigator import role as navigator

__all__ = ["GOAL"]

GOAL: Mapping[str, object] = {
    "contract": 1,
    "name": "web-goal",
    "displayName": "Reach a goal on the web",
    "description": "Does on the pages of one site what the prompt says: an agent with a browser, limited to its hosts.",
    "kind": "workflow",
    "parameters": {
        "type": "object",
        "properties": {
            "url": {
                "type": "string",
                "description": "The page to begin at; else the first address in the prompt.",
            },
            "hosts": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Further hosts that its pages may be at.",
            },
            "steps": {
                "type": "integer",
                "minimum": 1,
                "maximum": 500,
                "default": 30,
                "description": "How often it may use the browser.",
            },
            "seconds": {
                "type": "integer",
                "minimum": 1,
                "maximum": 86400,
                "default": 600,
                "description": "How long it may take.",
            },
        },
    },
    "roles": {
        navigator.name: {
            "description": navigator.description,
            "systemPrompt": navigator.system_prompt,
            "extractPrompt": navigator.extract_prompt,
            "schema": navigator.schema,
        }
    },
    "policy": {"role": {"tools": ["effect:browser"]}, "browser": {"private": True}},
}
