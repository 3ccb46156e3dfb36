"""Reader for the JSON of block flows. Unknown keys are reported in notes; an error has its path.

AnythingLLM's agent flows are accepted unchanged. Beyond them a flow may have a `policy`, typed
variables with a `category`, and the blocks `condition`, `forEach`, `code` and `flow`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from uncaged_bundles import hosts, shapes
from uncaged_bundles.examples import check_examples
from uncaged_bundles.shapes import Path

from ..recipes.flows import RecipeFlow
from ..recipes.grammar_check import check_pattern
from .mask import find_masks
from .reader import BlockReader
from .variables import declared_variables, read_variables
from .warnings import find_warnings

_TOP_KEYS = frozenset(
    {
        "name",
        "description",
        "active",
        "steps",
        "policy",
        "examples",
        "source",
        "displayName",
        "uuid",
        "grammarPatterns",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFlow(RecipeFlow):
    """Blocks that run in order.

    variables: initial values. expressions: the compiled expressions, by their text. active: False
    means that the flow is disabled when it is added. policy: limits that override those inferred
    from the blocks.
    """

    steps: list[Any]
    variables: Mapping[str, object]
    expressions: Mapping[str, object] = field(default_factory=dict)
    active: bool = True
    policy: Mapping[str, object] = field(default_factory=dict)


def is_block_flow(raw: object) -> bool:
    """Tell whether JSON data is a block flow: it has steps, perhaps wrapped in AnythingLLM's
    ``config``.
    """
    return isinstance(raw, dict) and (
        "steps" in raw or (isinstance(raw.get("config"), dict) and "steps" in raw["config"])
    )


def parse_block_flow(raw: Mapping[str, object], name: str) -> BlockFlow:
    """Return the flow that the JSON describes.

    Args:
        name: the name of the flow.
    Raises:
        ShapeError: the flow is not valid; with the dotted path, and the number of the block.
    """
    top: Path = ("flow",)
    inner = raw.get("config")
    fields = {**raw, **inner} if isinstance(inner, dict) and "steps" in inner else dict(raw)
    reader = BlockReader()
    display_name = shapes.text(fields.get("name", name), (*top, "name"))
    notes = [
        f"the key {key!r} of the flow is not known and does nothing"
        for key in fields
        if key not in _TOP_KEYS | {"config"}
    ]
    steps = reader.steps(shapes.required(fields, "steps", top), (*top, "steps"), "")
    variables, parameters = read_variables(steps, (*top, "steps", 0, "config", "variables"))
    masks = find_masks(steps)
    notes += reader.notes
    notes += [
        f"{place} was left out when the flow was exported: fill it in, and add the file again"
        for place in masks
    ]
    notes += find_warnings(steps, declared_variables(steps))
    policy = shapes.mapping(fields.get("policy", {}), (*top, "policy"))
    hosts.check_policy(policy, (*top, "policy"))
    examples = check_examples(fields.get("examples", []), (*top, "examples"))
    patterns = shapes.texts(fields.get("grammarPatterns", []), (*top, "grammarPatterns"))
    for index, pattern in enumerate(patterns):
        check_pattern(
            pattern,
            list(shapes.mapping(parameters["properties"], top)),
            (*top, "grammarPatterns", index),
        )
    return BlockFlow(
        name=name,
        description=shapes.text(fields.get("description") or display_name, (*top, "description")),
        display_name=display_name,
        source=shapes.text(fields.get("source", ""), (*top, "source")),
        parameters=parameters,
        patterns=tuple(patterns),
        examples=examples,
        notes=tuple(notes),
        steps=steps,
        variables=variables,
        expressions=reader.expressions,
        active=shapes.truth(fields.get("active", True), (*top, "active")) and not masks,
        policy=policy,
    )
