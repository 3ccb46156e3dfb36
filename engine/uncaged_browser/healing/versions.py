"""New version of a web flow from a thread that was healed, and the evidence for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.builders.recipes.flows import WebFlow
from uncaged_bundles.builders.recipes.recipe_flow import build_flow, flow_of
from uncaged_bundles.builders.scripts.web import web_parts
from uncaged_bundles.ids import BundleHash
from uncaged_bundles.storage.store import Store
from uncaged_bundles.validation.validate import Bundle, read_bundle
from uncaged_engine.services.proposals import Proposals
from uncaged_engine.services.registry import KNOWN

from .healed import Healing, healed_in
from .recipes import healed_steps

__all__ = ["evidence_of", "healed_version", "recipe_steps", "was_rejected"]

Steps = Sequence[Mapping[str, Any]]


@lru_cache(maxsize=4)
def recipe_steps(source: bytes) -> tuple[Mapping[str, object], ...]:
    """Return the steps of a web flow's bundle; none if it is a script or another flow."""
    text = source.decode("utf-8", "replace")
    return web_parts(text)[0] if "drive_web(" in text else ()


def healed_version(bundle: Bundle, steps: Steps, start: Mapping[str, Any]) -> Bundle | None:
    """Return the bundle with what was healed; None for a flow without a recipe.

    Args:
        steps: the thread's, in order; those of a recipe are one effect each.
    """
    from dataclasses import replace

    flow = flow_of(bundle)
    if not isinstance(flow, WebFlow) or not flow.steps or len(steps) != len(flow.steps):
        return None
    healed = {
        number: found for number, step in enumerate(steps) if (found := healed_in(step["outcome"]))
    }
    values = shapes.mapping(start["parameters"]["params"], ("params",))
    changed = replace(flow, steps=tuple(healed_steps(flow.steps, healed, values)))
    return read_bundle(build_flow(changed, KNOWN).source, KNOWN)


def evidence_of(steps: Steps) -> dict[str, object]:
    """Return each healing with the address at which it was made."""
    found: list[dict[str, object]] = []
    for number, step in enumerate(steps, 1):
        for one in healed_in(step["outcome"]):
            found.append(
                {
                    "step": number,
                    "from": one.before,
                    "to": one.after,
                    "score": one.score,
                    "why": list(one.why),
                    "url": step["outcome"].get("url", ""),
                }
            )
    return {"steps": found}


def was_rejected(healed: Sequence[Healing], store: Store, version: BundleHash) -> bool:
    """Tell whether a person decided against one of these healings for a version of a flow: whether
    the evidence of a rejected proposal has it.
    """
    now = {(one.before, one.after) for one in healed}
    for proposal in Proposals(store).all():
        steps = proposal.evidence.get("steps")
        if proposal.state != "rejected" or proposal.before != version:
            continue
        listed = steps if isinstance(steps, list) else []
        if any((one.get("from"), one.get("to")) in now for one in listed if isinstance(one, dict)):
            return True
    return False
