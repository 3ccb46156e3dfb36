"""Builder for block flows: the bundle has the descriptor, the carried driver and the blocks. The
policy is inferred from them.
"""

from __future__ import annotations

import ast
import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from uncaged_bundles.carried import block as carried_block
from uncaged_bundles.errors import BundleError
from uncaged_bundles.syntax import parse_module
from uncaged_bundles.validation.validate import Bundle

from ..recipes.descriptor import describe
from ..text.layout import write_driven
from ..text.literal import write_constant
from .block_flow import BlockFlow
from .mask import mask_steps
from .nesting import every_block

_HEAD = "# The block flow {name!r}, as uncaged-workflow built it from its JSON: change that, and add it again."
_SECRET = re.compile(r"secret:([A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?)")


def write_block(flow: BlockFlow) -> bytes:
    """Return the bundle of a block flow, not yet validated."""
    descriptor = describe(flow, kind="block", policy=policy_of(flow))
    constants = {"steps": flow.steps, "variables": flow.variables, "expressions": flow.expressions}
    rest = "".join(f"{write_constant(name, value)}\n" for name, value in constants.items())
    rest += (
        "\n\ndef run(input, options):\n"
        "    return (yield from drive_blocks(input, steps=steps, variables=variables, expressions=expressions))\n"
    )
    return write_driven(
        _HEAD.format(name=flow.name), descriptor, carried_block.__name__, ["drive_blocks"], rest
    )


def policy_of(flow: BlockFlow) -> dict[str, object]:
    """Return the policy that the blocks need, overridden by the limits of the file itself."""
    policy: dict[str, Any] = {}
    http = flow.policy.get("http")
    declared = http.get("secrets") if isinstance(http, dict) else None
    for number, kind, config in every_block(flow.steps):
        match kind:
            case "apiCall":
                _allow_host(policy.setdefault("http", {}), config["url"])
                _allow_secrets(
                    policy["http"], number, config, declared if isinstance(declared, dict) else {}
                )
            case "webScraping":
                _allow_host(policy.setdefault("fetch", {}), config["url"])
                if config.get("enableSummarization") is True:
                    policy.setdefault("llm", {})
            case "llmInstruction":
                policy.setdefault("llm", {})
                for tool in config.get("tools") or []:
                    _allow(policy.setdefault("flow", {}), "names", tool["flow"])
            case "flow":
                _allow(
                    policy.setdefault("flow", {}),
                    "names",
                    None if "${" in config["flow"] else config["flow"],
                )
            case _:
                continue
    for limits in policy.values():
        for key in [key for key, value in limits.items() if value is None]:
            del limits[key]
    for kind, limits in flow.policy.items():
        policy[kind] = {**policy.get(kind, {}), **limits} if isinstance(limits, dict) else limits
    return policy


def _allow_host(limits: dict[str, Any], url: str) -> None:
    place = place_of(url)
    _allow(limits, "hosts", place)
    if place and is_private(place):
        limits["private"] = True


def _allow(limits: dict[str, Any], key: str, value: str | None) -> None:
    """Add a value to a list of limits; a computed value (None) removes the list for good."""
    if value is None:
        limits[key] = None
    elif limits.setdefault(key, []) is not None and value not in limits[key]:
        limits[key].append(value)


def _allow_secrets(
    limits: dict[str, Any], number: str, config: Mapping[str, Any], declared: Mapping[str, Any]
) -> None:
    """Bind the secrets of a block to its host. If the host is computed, the file itself must name
    their hosts.
    """
    place = place_of(config["url"])
    for name in dict.fromkeys(_SECRET.findall(json.dumps(config))):
        if place is None and name not in declared:
            raise BundleError(
                f"block {number} (apiCall) sends secret:{name} to a host that is not written out in its url; "
                f'name the hosts that may have it: "policy": {{"http": {{"secrets": {{"{name}": ["api.example.com"]}}}}}}'
            )
        hosts = limits.setdefault("secrets", {}).setdefault(name, [])
        if place and place not in hosts:
            hosts.append(place)


def place_of(url: str) -> str | None:
    """Return the host of an address, with its port if it has one; None if it contains a
    variable.
    """
    scheme, _, rest = url.strip().partition("://")
    place = re.split(r"[/?#]", rest)[0].rpartition("@")[2]
    return None if not place or "${" in scheme + place else place.lower()


def is_private(place: str) -> bool:
    """Tell whether a host's literal is this machine or an address of a private network."""
    host = place[1 : place.rfind("]")] if place.startswith("[") else place.partition(":")[0]
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return False


def block_flow_of(bundle: Bundle) -> BlockFlow | None:
    """Return the flow that a bundle was built from; None if it was not built from a block flow."""
    text = bundle.source.decode()
    if bundle.descriptor.kind != "block" or "drive_blocks(" not in text:
        return None
    found: dict[str, Any] = {}
    for node in parse_module(text).body:
        match node:
            case ast.Assign(
                targets=[ast.Name(id="steps" | "variables" | "expressions" as name)], value=value
            ):
                found[name] = ast.literal_eval(value)
            case _:
                continue
    if not isinstance(found.get("steps"), list):
        return None
    raw = bundle.descriptor.raw
    examples = raw.get("examples")
    return BlockFlow(
        name=bundle.descriptor.name,
        description=bundle.descriptor.description,
        display_name=str(raw.get("displayName", "")),
        source=str(raw.get("source", "")),
        parameters=bundle.descriptor.parameters,
        patterns=_texts(raw.get("patterns")),
        aliases=_texts(raw.get("aliases")),
        examples=tuple(examples) if isinstance(examples, list) else (),
        steps=found["steps"],
        variables=found.get("variables", {}),
        expressions=found.get("expressions", {}),
        policy={kind: dict(limits) for kind, limits in bundle.descriptor.policy.limits.items()},
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in value) if isinstance(value, list) else ()


def export_block_flow(flow: BlockFlow, *, active: bool) -> tuple[str, list[str]]:
    """Return the JSON of a block flow without its credentials, and the places to fill in."""
    steps, places = mask_steps(flow.steps)
    document: dict[str, object] = {
        "name": flow.display_name or flow.name,
        "description": flow.description,
        "active": active,
        "steps": steps,
    }
    needed = policy_of(replace(flow, policy={}))
    own = {kind: limits for kind, limits in flow.policy.items() if limits != needed.get(kind)}
    more = {"policy": own, "grammarPatterns": list(flow.patterns), "examples": list(flow.examples)}
    document |= {key: value for key, value in more.items() if value}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n", places
