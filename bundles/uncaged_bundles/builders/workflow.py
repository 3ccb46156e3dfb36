"""Builder for workflow definitions: the bundle has the descriptor as a literal, the carried driver,
and the author's functions.

The same definition gives the same bytes on any machine, from any directory and under any hash seed.
"""

from __future__ import annotations

from collections.abc import Mapping

from uncaged_bundles.authoring import Role, Workflow
from uncaged_bundles.carried import workflow as carried
from uncaged_bundles.contract import CONTRACT
from uncaged_bundles.errors import BundleError, UsageError
from uncaged_bundles.limits import KNOWN_EFFECTS, EffectKinds
from uncaged_bundles.names import parse_flow_name
from uncaged_bundles.validation.validate import read_bundle

from .carrying.carry import Carrier
from .carrying.constants import check_constants
from .carrying.imports import write_imports
from .function import locate
from .schema import freeze_schema
from .table import check_table, write_graph
from .text.layout import spaced
from .text.literal import WIDTH, write_constant

_RESERVED = ("descriptor", "run", "input", "options")
_HEAD = "# The workflow {name!r}, as uncaged-workflow built it from its definition: change that, and build again."
_DRIVER_HEAD = "# Carried from uncaged-workflow: what the moderator sees, and the driver."
_AUTHOR_HEAD = "# Carried from the definition."


def build_workflow(workflow: Workflow, known_effects: EffectKinds = KNOWN_EFFECTS) -> bytes:
    """Return the bundle of *workflow*, validated.

    Args:
        known_effects: effect kinds that its policy may name.
    Raises:
        BundleError: something in the definition cannot be a bundle; the message names it and its
            place.
    """
    return check_built(write_workflow(workflow), workflow.name, known_effects)


def check_built(source: bytes, name: str, known_effects: EffectKinds) -> bytes:
    """Return *source* if it is a valid bundle.

    Raises:
        BundleError: it is not; the message names *name*, the definition that it was built from.
    """
    try:
        read_bundle(source, known_effects, check_schemas=True)
    except BundleError as exc:
        raise BundleError(f"what {name!r} builds is not a valid bundle: {exc}") from exc
    return source


def write_workflow(workflow: Workflow) -> bytes:
    """Return the bundle of *workflow*, not yet validated (that needs the known effect kinds)."""
    try:
        parse_flow_name(workflow.name)
    except UsageError as exc:
        raise BundleError(f"the workflow's name: {exc}") from exc
    if "role" not in workflow.policy:
        raise BundleError(
            f'the policy of workflow {workflow.name!r} must allow its roles: write {{"role": {{}}, …}}'
        )
    roles = {role.name: _role(role) for role in workflow.roles}
    descriptor = _descriptor(workflow, roles)
    carrier = Carrier(reserved=_RESERVED, trusted=workflow.policy.get("trusted") is True)
    carrier.carry(carried.__name__, "drive_roles")
    run = _run(workflow, carrier)
    code = list(carrier.code())
    imports = write_imports(carrier.imports())
    parts = [
        _HEAD.format(name=workflow.name),
        *(["\n".join(imports)] if imports else []),
        write_constant("descriptor", descriptor),
        f"{_DRIVER_HEAD}\n\n\n{spaced([text for module, text in code if module == carried.__name__])}",
    ]
    authored = [text for module, text in code if module != carried.__name__]
    parts += [f"\n{_AUTHOR_HEAD}\n\n\n{spaced(authored)}"] if authored else []
    source = ("\n\n".join(parts) + "\n\n\n" + run).encode()
    check_constants(source, carrier.bindings())
    return source


def _role(role: Role) -> dict[str, object]:
    return {
        "description": role.description,
        "systemPrompt": role.system_prompt,
        "extractPrompt": role.extract_prompt,
        "schema": freeze_schema(role.schema, f"role {role.name!r}: schema"),
    }


def _descriptor(workflow: Workflow, roles: Mapping[str, dict[str, object]]) -> dict[str, object]:
    descriptor: dict[str, object] = {
        "contract": CONTRACT,
        "name": workflow.name,
        "description": workflow.description,
        "kind": "workflow",
        "parameters": workflow.parameters,
        "roles": roles,
        "policy": workflow.policy,
        "continues": workflow.continues,
    }
    table = workflow.moderator if isinstance(workflow.moderator, Mapping) else workflow.graph
    if table is not None:
        schemas = {
            role.name: freeze_schema(role.schema, f"role {role.name!r}: schema")
            for role in workflow.roles
        }
        if problems := check_table(table, schemas, several=table is workflow.graph):
            listed = "\n".join(f"- {problem}" for problem in problems)
            raise BundleError(
                f"the table of workflow {workflow.name!r} has {len(problems)} problem{'s' if len(problems) > 1 else ''}:\n{listed}"
            )
        descriptor["graph"] = write_graph(table)
    return descriptor


def _run(workflow: Workflow, carrier: Carrier) -> str:
    """Carry the workflow's functions and return the text of ``run``, which passes them to the
    driver.
    """
    arguments = ["input", "options", 'roles=descriptor["roles"]']
    functions: list[tuple[str, object, list[str]]] = []
    if isinstance(workflow.moderator, Mapping):
        carrier.carry(carried.__name__, "follow_table")
        arguments.append('moderator=follow_table(descriptor["graph"])')
    else:
        functions.append(("moderator", workflow.moderator, ["ctx"]))
    if workflow.result is not None:
        functions.append(("result", workflow.result, ["ctx"]))
    if workflow.recover is not None:
        functions.append(("recover", workflow.recover, ["ctx", "failure"]))
    for what, function, parameters in functions:
        location = locate(function, what, parameters)
        carrier.carry(location.module, location.name)
        arguments.append(f"{what}={location.name}")
    call = f"drive_roles({', '.join(arguments)})"
    if len(call) > WIDTH - len("    return (yield from )"):
        call = (
            "drive_roles(\n"
            + "".join(f"            {argument},\n" for argument in arguments)
            + "        )"
        )
        return f"def run(input, options):\n    return (\n        yield from {call}\n    )\n"
    return f"def run(input, options):\n    return (yield from {call})\n"
