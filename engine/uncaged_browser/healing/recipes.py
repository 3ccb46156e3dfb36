"""New version of a web recipe: its steps with the new names of healed targets, and with healed
expectations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.builders.recipes.web_recipe import placeholders

from ..recording.recipe import StepWriter
from .healed import HealedExpectation, Healing

__all__ = ["healed_recipe", "healed_steps", "values_in_target"]

REWORDED = {"title", "heading"}
FACTS = {"target": "facts", "onto": "ontoFacts"}


def healed_recipe(
    recipe: Mapping[str, object],
    healed: Mapping[int, Sequence[Healing]],
    values: Mapping[str, object],
) -> dict[str, object]:
    """Return a recipe with the steps of `healed_steps`."""
    steps = [shapes.mapping(one, ("steps",)) for one in shapes.items(recipe["steps"], ("steps",))]
    return {**recipe, "steps": healed_steps(steps, healed, values)}


def healed_steps(
    steps: Sequence[Mapping[str, object]],
    healed: Mapping[int, Sequence[Healing]],
    values: Mapping[str, object],
) -> list[dict[str, object]]:
    """Return the steps with the new names and expectations, in which values of parameters are
    placeholders again.

    Args:
        healed: by the number of the step, from 0. values: of the parameters in the run that healed.
    """
    found = [dict(step) for step in steps]
    for number, targets in healed.items():
        for one in targets:
            found[number] |= _written(found[number], one, values)
    return found


def values_in_target(step: object, values: Mapping[str, object]) -> tuple[str, ...]:
    """Return the values of the parameters that the targets of a step name."""
    if not isinstance(step, Mapping):
        return ()
    used = placeholders([step.get(key) for key in FACTS])
    return tuple(str(values[name]) for name in sorted(used) if values.get(name))


def _written(
    step: Mapping[str, object], healed: Healing, values: Mapping[str, object]
) -> dict[str, Any]:
    # only those of the former names: another value may be equal to a name by chance
    used = placeholders([step.get(healed.key), step.get(FACTS.get(healed.key, ""))])
    texts = {
        name: value
        for name, value in values.items()
        if name in used and isinstance(value, str) and value
    }
    writer = StepWriter(texts, None)
    if isinstance(healed, HealedExpectation):
        former = shapes.mapping(step[healed.key], (healed.key,))
        written = writer.expectation(healed.expect.document())
        return {healed.key: {**written, **{key: former[key] for key in former.keys() - REWORDED}}}
    frame = {key: writer.target(one) for key, one in healed.frame_document().items()}
    return {
        **frame,
        healed.key: writer.target([one.document() for one in healed.names]),
        FACTS[healed.key]: writer.facts(healed.facts.document()),
    }
