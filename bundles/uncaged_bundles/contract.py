"""Descriptor of a bundle: its keys, and the check of their types."""

from __future__ import annotations

import re
from collections.abc import Mapping

from . import shapes
from .errors import UsageError
from .limits import KNOWN_EFFECTS, EffectKinds
from .names import parse_flow_name
from .policy import Policy, parse_policy
from .records import dataclass
from .validation.modules import ALLOWED_MODULES, EFFECT_FOR_MODULE

__all__ = [
    "ALLOWED_MODULES",
    "CONTRACT",
    "EFFECT_FOR_MODULE",
    "END",
    "FOR_PEOPLE",
    "KINDS",
    "START",
    "Descriptor",
    "RoleSpec",
    "parse_descriptor",
]

CONTRACT = 1
KINDS = ("workflow", "script", "web", "task", "block")
START = "__start__"
END = "__end__"
FOR_PEOPLE = "forPeople"
"""In a parameter's schema: a person may set it, and a model is not offered it."""

_REQUIRED = frozenset({"contract", "name", "description", "kind"})
Graph = Mapping[str, Mapping[str, tuple[str, ...]]]
_OPTIONAL = frozenset(
    {"parameters", "roles", "policy", "continues", "graph", "patterns", "aliases", "examples"}
)
_OPTIONAL |= {"source", "displayName", "unsupported"}
_OPTIONAL |= {"pack", "learn", "onFailure", "scope", "urlPatterns", "maxSeconds"}
ON_FAILURE = ("reason", "fix")
"""Values of ``onFailure``: the reasoning agent continues where the flow failed, or a fix of the
flow is proposed.
"""
_ROLE_KEYS = frozenset({"description", "systemPrompt", "extractPrompt", "schema"})
_ROLE_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,59}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSpec:
    """A role as pure data. schema: JSON Schema of the data of its answers."""

    name: str
    description: str
    system_prompt: str
    extract_prompt: str
    schema: Mapping[str, object]


CLAIM = "x-claim"
CLAIMS = ("git.branch", "git.commit", "git.files", "tests")
"""What a field of a role's schema may be marked with: the engine compares its value with the
workspace.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Descriptor:
    """The checked descriptor of a bundle.

    parameters: JSON Schema of ``input["params"]``. graph: the edges that the moderator may take,
    ``{role: {status: (next, …)}}``, the first role under ``__start__`` with the status ``""``; None
    if the author declared none. raw: the literal as it is in the file.
    """

    name: str
    description: str
    kind: str
    parameters: Mapping[str, object]
    roles: Mapping[str, RoleSpec]
    policy: Policy
    continues: bool
    graph: Graph | None
    raw: Mapping[str, object]

    @property
    def asked_roles(self) -> Mapping[str, RoleSpec]:
        """Return the roles that an agent may be asked for: none if the policy has no ``role``.

        Steps of the other roles are yielded by the bundle itself, as outputs.
        """
        return self.roles if "role" in self.policy.limits else {}

    def schema_for_models(self) -> dict[str, object]:
        """Return the JSON Schema of the parameters, without those that only a person may set."""
        schema: dict[str, object] = {"type": "object", **self.parameters}
        declared = schema.get("properties")
        shown = {
            name: part
            for name, part in (declared.items() if isinstance(declared, Mapping) else ())
            if not (isinstance(part, Mapping) and part.get(FOR_PEOPLE))
        }
        required = schema.pop("required", None)
        needed = [name for name in required if name in shown] if isinstance(required, list) else []
        return {**schema, "properties": shown, **({"required": needed} if needed else {})}


def parse_descriptor(raw: object, known_effects: EffectKinds = KNOWN_EFFECTS) -> Descriptor:
    """Check the literal *raw* key by key.

    Raises:
        ShapeError: the first wrong value, with its dotted path; a newer contract is refused first.
    """
    top = ("descriptor",)
    fields = shapes.mapping(raw, top)
    _check_contract(shapes.required(fields, "contract", top), (*top, "contract"))
    shapes.known_keys(fields, _REQUIRED | _OPTIONAL, top)
    shapes.json_data(fields, top)
    roles = shapes.mapping(fields.get("roles", {}), (*top, "roles"))
    specs = {name: _role(name, value, (*top, "roles", name)) for name, value in roles.items()}
    descriptor = Descriptor(
        name=_name(shapes.required(fields, "name", top), (*top, "name")),
        description=shapes.text(shapes.required(fields, "description", top), (*top, "description")),
        kind=shapes.one_of(*KINDS)(shapes.required(fields, "kind", top), (*top, "kind")),
        parameters=shapes.mapping(fields.get("parameters", {}), (*top, "parameters")),
        roles=specs,
        policy=parse_policy(fields.get("policy", {}), known_effects, (*top, "policy")),
        continues=shapes.truth(fields.get("continues", False), (*top, "continues")),
        graph=None
        if fields.get("graph") is None
        else _graph(fields["graph"], specs, (*top, "graph")),
        raw=fields,
    )
    for key in ("source", "displayName", "unsupported"):
        shapes.text(fields.get(key, ""), (*top, key))
    if "maxSeconds" in fields:
        shapes.positive(fields["maxSeconds"], (*top, "maxSeconds"))
    _check_dispatch(fields, top)
    for key in ("patterns", "aliases"):
        shapes.texts(fields.get(key, []), (*top, key))
    if not isinstance(fields.get("examples", []), list):
        raise shapes.ShapeError((*top, "examples"), "must be a list")
    return descriptor


def _check_contract(value: object, path: shapes.Path) -> None:
    contract = shapes.whole(value, path)
    if contract > CONTRACT:
        raise shapes.ShapeError(
            path,
            f"contract {contract} is newer than {CONTRACT}, the newest known here; update uncaged-workflow",
        )
    if contract < 1:
        raise shapes.ShapeError(path, f"there is no contract {contract}; the first is 1")


def _check_dispatch(fields: Mapping[str, object], top: shapes.Path) -> None:
    """Check the keys that only the dispatcher reads.

    pack: the pack of the flow. learn: whether a translated sentence may be learned for it. scope:
    the sites of a web flow, and urlPatterns the pages on which it is offered.
    """
    if "pack" in fields:
        _name(fields["pack"], (*top, "pack"))
    shapes.truth(fields.get("learn", True), (*top, "learn"))
    if "onFailure" in fields:
        shapes.one_of(*ON_FAILURE)(fields["onFailure"], (*top, "onFailure"))
    shapes.mapping(fields.get("scope", {}), (*top, "scope"))
    shapes.texts(fields.get("urlPatterns", []), (*top, "urlPatterns"))


def _name(value: object, path: shapes.Path) -> str:
    try:
        return parse_flow_name(shapes.text(value, path))
    except UsageError as exc:
        raise shapes.ShapeError(path, str(exc)) from exc


def _role(name: str, value: object, path: shapes.Path) -> RoleSpec:
    if not _ROLE_NAME.fullmatch(name):
        raise shapes.ShapeError(
            path,
            "a role's name starts with a letter and has at most 60 letters, digits, '-' and '_'",
        )
    fields = shapes.mapping(value, path)
    shapes.known_keys(fields, _ROLE_KEYS, path)
    return RoleSpec(
        name=name,
        description=shapes.text(
            shapes.required(fields, "description", path), (*path, "description")
        ),
        system_prompt=shapes.text(
            shapes.required(fields, "systemPrompt", path), (*path, "systemPrompt")
        ),
        extract_prompt=shapes.text(
            shapes.required(fields, "extractPrompt", path), (*path, "extractPrompt")
        ),
        schema=shapes.mapping(shapes.required(fields, "schema", path), (*path, "schema")),
    )


def _graph(value: object, roles: Mapping[str, RoleSpec], path: shapes.Path) -> Graph:
    graph: dict[str, dict[str, tuple[str, ...]]] = {}
    for source, edges in shapes.mapping(value, path).items():
        if source != START and source not in roles:
            raise shapes.ShapeError(
                (*path, source),
                f"is neither a role nor {START!r}; roles: {', '.join(roles) or 'none'}",
            )
        rows = {"": edges} if isinstance(edges, str) else shapes.mapping(edges, (*path, source))
        graph[source] = {}
        for status, listed in rows.items():
            targets = listed if isinstance(listed, list) and listed else [listed]
            for target in targets:
                if not isinstance(target, str) or (target != END and target not in roles):
                    where = (*path, source, status) if status else (*path, source)
                    known = ", ".join(roles) or "none"
                    raise shapes.ShapeError(
                        where,
                        f"{shapes.shown(target)} is neither a role nor {END!r}; roles: {known}",
                    )
            graph[source][status] = tuple(map(str, targets))
    return graph
