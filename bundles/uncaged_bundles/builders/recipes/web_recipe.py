"""Parts of web recipes: the policy that a scope means, and steps with their placeholders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from uncaged_bundles import hosts, shapes
from uncaged_bundles.addresses import literal
from uncaged_bundles.carried.web import PLACEHOLDER
from uncaged_bundles.shapes import Path, ShapeError

__all__ = ["placeholders", "policy_of", "read_steps"]

SCOPES = ("site", "global")
SCOPE_KEYS = frozenset({"type", "domains", "hosts", "urlPatterns", "private"})
MAX_STEPS = 1_000


def policy_of(scope: Mapping[str, object], secrets: object, top: Path) -> dict[str, object]:
    """Return the limits of the browser effect for a scope and secrets.

    Raises:
        ShapeError: the scope has another shape, or a host is no host.
    """
    path = (*top, "scope")
    shapes.known_keys(scope, SCOPE_KEYS, path)
    type = shapes.one_of(*SCOPES)(scope.get("type", "site"), (*path, "type"))
    key = "domains" if "domains" in scope else "hosts"
    domains = shapes.texts(scope.get(key, []), (*path, key))
    if (type == "site") is not bool(domains):
        raise ShapeError(
            path, "of type 'site' needs domains" if type == "site" else "of type 'global' has none"
        )
    hosts.check_entries(domains, (*path, key))
    allowed = _with_names_below(domains) if key == "domains" else domains
    policy: dict[str, object] = {"hosts": allowed} if allowed else {}
    patterns = shapes.texts(scope.get("urlPatterns", []), (*path, "urlPatterns"))
    if patterns:
        policy["urlPatterns"] = patterns
    if shapes.truth(scope.get("private", False), (*path, "private")):
        policy["private"] = True
    bound = shapes.mapping(secrets, (*top, "secrets"))
    for name, entries in bound.items():
        hosts.check_entries(shapes.texts(entries, (*top, "secrets", name)), (*top, "secrets", name))
    return {**policy, "secrets": bound} if bound else policy


def _with_names_below(domains: list[str]) -> list[str]:
    """Return domains as entries of a policy: ``shop.test`` takes ``www.shop.test``."""
    return [
        entry
        for domain in domains
        for entry in (domain, *([f"*.{domain}"] if _has_names_below(domain) else []))
    ]


def _has_names_below(domain: str) -> bool:
    entry = hosts.read_entry(domain)
    return bool(entry.host) and not entry.below and literal(entry.host) is None


def read_steps(
    raw: object, parameters: Mapping[str, object], top: Path
) -> tuple[Mapping[str, object], ...]:
    """Return the steps of a web flow. Their operations are checked by the browser when they are
    performed.

    Raises:
        ShapeError: a step has no operation, or the placeholder of an unknown parameter.
    """
    listed = shapes.items(raw, top)
    if not 0 < len(listed) <= MAX_STEPS:
        raise ShapeError(top, f"has {len(listed):,} steps; a flow has 1 to {MAX_STEPS:,}")
    known = shapes.mapping(parameters.get("properties", {}), top)
    found = []
    for index, step in enumerate(listed):
        path = (*top, index)
        fields = shapes.mapping(step, path)
        shapes.filled(shapes.required(fields, "do", path), (*path, "do"))
        if "keep" in fields:
            shapes.filled(fields["keep"], (*path, "keep"))
        for name in placeholders(step):
            if name not in known:
                raise ShapeError(
                    path,
                    f"there is no parameter {name!r}; there are: {', '.join(known) or 'none'}"
                    " (the text '${' is written '$${')",
                )
        found.append(fields)
    return tuple(found)


def placeholders(value: object) -> set[str]:
    """Return the parameters that a step names."""
    return set(_placeholders(value))


def _placeholders(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield from (found[1] for found in PLACEHOLDER.finditer(value) if found[1])
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _placeholders(item)
    elif isinstance(value, list):
        for item in value:
            yield from _placeholders(item)
