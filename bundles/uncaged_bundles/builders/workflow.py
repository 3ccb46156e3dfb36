"""Builder for workflow definitions: the bundle has the descriptor as a literal, the carried driver,
and the author's functions.

The same definition gives the same bytes on any machine, from any directory and under any hash seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uncaged_bundles.authoring import Graph, Role, Workflow
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

KIND = "workflow"
RESERVED = ("descriptor", "run", "input", "options")
"""Names that a bundle of a workflow binds itself."""
FUNCTIONS = {"moderator": ["ctx"], "result": ["ctx"], "recover": ["ctx", "failure"]}
"""Parameters of an author's functions, by their part in a workflow."""
AUTHOR_HEAD = "# Carried from the definition."
_HEAD = "# The workflow {name!r}, as uncaged-workflow built it from its definition: change that, and build again."
_DRIVER_HEAD = "# Carried from uncaged-workflow: what the moderator sees, and the driver."


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
    is_table = isinstance(workflow.moderator, Mapping)
    descriptor = write_descriptor(
        name=workflow.name,
        description=workflow.description,
        parameters=workflow.parameters,
        roles={role.name: _role(role) for role in workflow.roles},
        policy=workflow.policy,
        continues=workflow.continues,
        on_failure=workflow.on_failure,
        table=workflow.moderator if isinstance(workflow.moderator, Mapping) else workflow.graph,
        is_moderator=is_table,
    )
    carrier = Carrier(reserved=RESERVED, trusted=workflow.policy.get("trusted") is True)
    carrier.carry(carried.__name__, "drive_roles")
    run = write_run(_carried_functions(workflow, carrier))
    code = list(carrier.code())
    authored = [text for module, text in code if module != carried.__name__]
    source = write_source(
        name=workflow.name,
        imports=write_imports(carrier.imports()),
        descriptor=descriptor,
        driver=spaced([text for module, text in code if module == carried.__name__]),
        authored=spaced(authored) if authored else "",
        run=run,
    )
    check_constants(source, carrier.bindings())
    return source


def write_source(
    *,
    name: str,
    imports: Sequence[str],
    descriptor: Mapping[str, object],
    driver: str,
    authored: str,
    run: str,
) -> bytes:
    """Return the text of a workflow's bundle, of its parts.

    Args:
        imports: lines. driver, authored: our code and the author's, which may be empty.
    """
    parts = [
        _HEAD.format(name=name),
        *(["\n".join(imports)] if imports else []),
        write_constant("descriptor", descriptor),
        f"{_DRIVER_HEAD}\n\n\n{driver}",
    ]
    parts += [f"\n{AUTHOR_HEAD}\n\n\n{authored}"] if authored else []
    return ("\n\n".join(parts) + "\n\n\n" + run).encode()


def write_descriptor(
    *,
    name: str,
    description: str,
    parameters: Mapping[str, object],
    roles: Mapping[str, Mapping[str, object]],
    policy: Mapping[str, object],
    continues: bool,
    on_failure: str,
    table: Graph | None,
    is_moderator: bool,
) -> dict[str, object]:
    """Return the descriptor of a workflow.

    Args:
        roles: as the descriptor has them. table: the moderator, or the edges that it may take; None
            if they are not declared. is_moderator: it is the moderator.
    Raises:
        BundleError: the name, the policy or the table is not valid.
    """
    try:
        parse_flow_name(name)
    except UsageError as exc:
        raise BundleError(f"the workflow's name: {exc}") from exc
    if "role" not in policy:
        raise BundleError(
            f'the policy of workflow {name!r} must allow its roles: write {{"role": {{}}, …}}'
        )
    descriptor: dict[str, object] = {
        "contract": CONTRACT,
        "name": name,
        "description": description,
        "kind": KIND,
        "parameters": parameters,
        "roles": roles,
        "policy": policy,
        "continues": continues,
        **({"onFailure": on_failure} if on_failure else {}),
    }
    if table is not None:
        schemas: dict[str, Any] = {role: fields["schema"] for role, fields in roles.items()}
        if problems := check_table(table, schemas, several=not is_moderator):
            listed = "\n".join(f"- {problem}" for problem in problems)
            raise BundleError(
                f"the table of workflow {name!r} has {len(problems)} problem{'s' if len(problems) > 1 else ''}:\n{listed}"
            )
        descriptor["graph"] = write_graph(table)
    return descriptor


def write_run(functions: Mapping[str, str]) -> str:
    """Return the text of ``run``, which passes the functions to the driver.

    Args:
        functions: names by part; without a ``moderator`` the descriptor's graph is followed.
    """
    arguments = ["input", "options", 'roles=descriptor["roles"]']
    if "moderator" not in functions:
        arguments.append('moderator=follow_table(descriptor["graph"])')
    arguments += [f"{part}={functions[part]}" for part in FUNCTIONS if part in functions]
    call = f"drive_roles({', '.join(arguments)})"
    if len(call) > WIDTH - len("    return (yield from )"):
        call = (
            "drive_roles(\n"
            + "".join(f"            {argument},\n" for argument in arguments)
            + "        )"
        )
        return f"def run(input, options):\n    return (\n        yield from {call}\n    )\n"
    return f"def run(input, options):\n    return (yield from {call})\n"


def _role(role: Role) -> dict[str, object]:
    return {
        "description": role.description,
        "systemPrompt": role.system_prompt,
        "extractPrompt": role.extract_prompt,
        "schema": freeze_schema(role.schema, f"role {role.name!r}: schema"),
    }


def _carried_functions(workflow: Workflow, carrier: Carrier) -> dict[str, str]:
    """Carry the workflow's functions, or what follows its table; return their names by part."""
    if isinstance(workflow.moderator, Mapping):
        carrier.carry(carried.__name__, "follow_table")
    named = {}
    for part, parameters in FUNCTIONS.items():
        function = getattr(workflow, part)
        is_left_out = function is None and part != "moderator"
        if not is_left_out and not isinstance(function, Mapping):
            location = locate(function, part, parameters)
            carrier.carry(location.module, location.name)
            named[part] = location.name
    return named
