"""Writer of recipes: the JSON from which a flow is built again, the inverse of `parse_recipe`."""

from __future__ import annotations

import json
from collections.abc import Mapping

from uncaged_bundles import shapes
from uncaged_bundles.errors import BundleError
from uncaged_bundles.limits import KNOWN_EFFECTS, EffectKinds

from ..blocks.block import export_block_flow
from ..blocks.block_flow import BlockFlow
from .flows import ForeignFlow, RecipeFlow, ScriptFlow, TaskFlow, WebFlow
from .parameters import list_fields
from .recipe import parse_recipe
from .recipe_flow import build_flow

__all__ = ["recipe_source", "write_recipe"]


def write_recipe(flow: RecipeFlow) -> dict[str, object]:
    """Return the recipe of a flow, as JSON values.

    Raises:
        BundleError: the flow has credentials, which a recipe does not hold.
    """
    match flow:
        case BlockFlow():
            text, masked = export_block_flow(flow, active=flow.active)
            if masked:
                raise BundleError(f"{flow.name} has credentials at {', '.join(masked)}")
            block = dict(shapes.mapping(json.loads(text), ("recipe",)))
            return {**block, **({"source": flow.source} if flow.source else {})}
        case ScriptFlow():
            script: dict[str, object] = {
                "language": flow.language,
                "body": flow.body,
                "expectedOutputFormat": flow.form,
                "arguments": list(flow.arguments),
            }
            if flow.repeat:
                script["repeat"] = True
            more: dict[str, object] = {"script": script, "policy": {"script": dict(flow.policy)}}
            return {"version": 1, "actionName": flow.name, **_shared(flow), **more}
        case TaskFlow():
            more = {} if flow.policy is None else {"policy": dict(flow.policy)}
            return {"name": flow.name, **_shared(flow), "script": flow.script, **more}
        case WebFlow():
            secrets = flow.policy.get("secrets")
            more = {"script": flow.script} if flow.script else {"steps": list(flow.steps)}
            more |= {"scope": dict(flow.scope), "maxSeconds": flow.max_seconds}
            more |= {"secrets": secrets} if secrets else {}
            return {"kind": "web", "name": flow.name, **_shared(flow), **more}
        case ForeignFlow():
            raise BundleError(f"{flow.name} is in {flow.language}, which is not run here")
        case _:
            raise BundleError(f"{flow.name}: this is no kind of flow")


def recipe_source(recipe: object, name: str, known_effects: EffectKinds = KNOWN_EFFECTS) -> bytes:
    """Return the bundle of a recipe.

    Raises:
        BundleError: the recipe is not valid, or is that of a flow that is not *name*.
    """
    flow = parse_recipe(recipe)
    if flow.name != name:
        raise BundleError(f"it is the recipe of the flow {flow.name!r}, not of {name!r}")
    return build_flow(flow, known_effects).source


def _shared(flow: RecipeFlow) -> dict[str, object]:
    fields: Mapping[str, object] = {
        "displayName": flow.display_name,
        "description": flow.description,
        "parameters": list_fields(flow.parameters),
        "grammarPatterns": [
            {"pattern": pattern, "isAlias": pattern in flow.aliases} for pattern in flow.patterns
        ],
        "examples": list(flow.examples),
        "source": flow.source,
        "onFailure": flow.on_failure,
    }
    return {
        key: value for key, value in fields.items() if value or key in ("description", "parameters")
    } | {"displayName": flow.display_name}
