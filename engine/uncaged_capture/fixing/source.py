"""Source of a flow, as `flow.json` has it: the recipe, or the definition of a role workflow, from
which a bundle is built again.
"""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.builders.recipes.recipe_flow import flow_of
from uncaged_bundles.builders.recipes.recipe_text import recipe_source, write_recipe
from uncaged_bundles.builders.workflow import KIND
from uncaged_bundles.builders.written_definition import definition_source, read_definition
from uncaged_bundles.errors import BundleError, RefusedError
from uncaged_bundles.validation.validate import Bundle
from uncaged_engine.services.registry import KNOWN

from .case import Recipe

__all__ = ["built_from", "source_of"]


def source_of(bundle: Bundle) -> Recipe:
    """Return the recipe or the definition from which a bundle is built again.

    Raises:
        RefusedError: there is none; the message has the next step.
    """
    name = bundle.descriptor.name
    add = f"add it again from its file: uncaged-workflow add {name} FILE"
    if bundle.trusted:
        raise RefusedError(
            f"{name!r} is trusted, which no fix can be; change its source file, and {add}"
        )
    try:
        flow = flow_of(bundle)
        source = read_definition(bundle) if flow is None else write_recipe(flow)
        built = None if source is None else built_from(source, name)
    except BundleError as exc:
        raise RefusedError(f"{name!r} cannot be written as a recipe: {exc}") from exc
    if source is None:
        raise RefusedError(
            f"{name!r} was not built from a recipe, a script or a definition, so its source is not in the store;"
            f" change its source file, and {add}"
        )
    if built != bundle.source:
        edit = f", or edit it: uncaged-workflow edit {name}" if flow is not None else ""
        raise RefusedError(f"{name!r} was built by another version of the builder; {add}{edit}")
    return source


def built_from(source: object, name: str) -> bytes:
    """Return the bundle of a recipe or a definition.

    Raises:
        BundleError: it is not valid, or is that of a flow that is not *name*.
    """
    if isinstance(source, Mapping) and source.get("kind") == KIND:
        return definition_source(source, name, KNOWN)
    return recipe_source(source, name, KNOWN)
