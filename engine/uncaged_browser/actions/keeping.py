"""Web flows made of a page's action: the values that were given are the parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncaged_bundles.errors import UsageError

from ..addresses import is_private, parts_of
from ..operations import Navigate, read_operation
from ..recording.recipe import ORIGIN, StepWriter
from ..recording.recording import Recording
from ..secrets import name_of_secret
from .plan import ActionPlan, PlannedValue

__all__ = ["recipe_of_action", "recording_of_action"]

MOST_CHOICES = 40
PATTERNS = {"date": r"^\d{4}-\d{2}-\d{2}$", "time": r"^\d{2}:\d{2}(:\d{2})?$"}


def recording_of_action(plan: ActionPlan, name: str, hosts: Sequence[str]) -> Recording:
    """Return the operations of an action with its values as a recording."""
    steps = (Navigate(url=plan.url), *(read_operation(body) for body in plan.bodies))
    return Recording(name=name, url=plan.url, steps=steps, hosts=tuple(hosts))


def recipe_of_action(plan: ActionPlan, name: str, hosts: Sequence[str]) -> dict[str, object]:
    """Return the web recipe of an action.

    Args:
        hosts: those besides the page's that the flow may reach.
    Raises:
        UsageError: the page has no address that a flow can load.
    """
    parts = parts_of(plan.url)
    if parts is None or parts.scheme not in ("http", "https") or not parts.netloc:
        raise UsageError(f"{plan.url[:200]!r} is no address that a flow can load")
    origin = f"{parts.scheme}://{parts.netloc}"
    writer = StepWriter({}, origin)
    kept = [one for one in plan.values if name_of_secret(one.text) is None]
    steps: list[object] = [writer.write(Navigate(url=plan.url))]
    if plan.action.kind != "page":
        steps += [_placed(writer, one) for one in plan.values]
    if plan.last is not None:
        last = writer.write(read_operation(plan.last))
        if plan.action.kind == "page":
            last["arguments"] = {one.name: f"${{{one.name}}}" for one in plan.values}
        if plan.action.kind in ("page", "landmark"):
            last["keep"] = "result"
        steps.append(last)
    domains = list(dict.fromkeys([parts.netloc, *hosts]))
    secrets = dict.fromkeys(filter(None, (name_of_secret(one.text) for one in plan.values)))
    return {
        "kind": "web",
        "version": 1,
        "name": name,
        "description": f"Performs {plan.action.name}, which was found at {plan.url}.",
        "parameters": {
            **{one.name: _parameter(one) for one in kept},
            ORIGIN: {
                "type": "string",
                "required": False,
                "description": "scheme, host and port of the site",
                "default": origin,
            },
        },
        "steps": steps,
        "scope": {
            "type": "site",
            "domains": domains,
            **({"private": True} if any(map(is_private, domains)) else {}),
        },
        **({"secrets": {one: [parts.netloc] for one in secrets}} if secrets else {}),
        "grammarPatterns": [],
        "source": {"type": "discovered", "originUrl": plan.url},
    }


def _placed(writer: StepWriter, value: PlannedValue) -> dict[str, object]:
    """Return the step of a value, in which only the place of the value is a placeholder."""
    written = writer.write(read_operation(value.body))
    changed = {key: part for key, part in value.placed.items() if part != value.body.get(key)}
    return {**written, **changed}


def _parameter(value: PlannedValue) -> Mapping[str, object]:
    """Return a parameter of a recipe."""
    schema = value.schema
    kind = schema.get("type", "string")
    choices = schema.get("enum")
    rules: dict[str, object] = {}
    if isinstance(choices, list) and len(choices) <= MOST_CHOICES:
        rules["allowedValues"] = choices
    elif schema.get("format") in PATTERNS:
        rules["pattern"] = PATTERNS[str(schema["format"])]
    return {
        "type": kind,
        "required": False,
        "description": str(schema.get("title", schema.get("description", ""))),
        "default": value.value,
        **({"validation": rules} if rules else {}),
    }
