"""Editing of flows: the flow is read back from its bundle, changed, and built again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncaged_bundles.errors import NotFoundError, RefusedError, UsageError

from .catalog import nearest
from .inputs.files import parse_json
from .inputs.parameters import read_file
from .inputs.sources import read_flow, read_script

if TYPE_CHECKING:
    from uncaged_bundles.builders.recipes.flows import RecipeFlow
    from uncaged_bundles.builders.recipes.recipe_flow import BuiltFlow
    from uncaged_bundles.validation.validate import Bundle
    from uncaged_engine.api import Added, Engine

PARAMETER_FIELDS = (
    "type",
    "required",
    "default",
    "description",
    "pattern",
    "allowedValues",
    "pathMustExist",
)
RULES = ("pattern", "allowedValues", "pathMustExist")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowEdit:
    """The requested changes.

    parameters: ``NAME.FIELD=VALUE`` texts. policy_file: the whole policy; the other permissions are
    added to it.
    """

    script: Path | None = None
    description: str | None = None
    parameters: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    policy_file: Path | None = None
    commands: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    flows: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not any(getattr(self, field.name) for field in fields(self))


def edited_bundle(bundle: Bundle, name: str, edit: FlowEdit) -> BuiltFlow:
    """Return the bundle of the changed flow.

    Raises:
        RefusedError: the bundle was not built from a recipe or a script.
        UsageError, BundleError: a change is invalid.
    """
    from uncaged_bundles.builders.blocks.block_flow import BlockFlow
    from uncaged_bundles.builders.recipes.recipe_flow import build_flow, flow_of
    from uncaged_engine.effect_kinds import KNOWN

    flow = flow_of(bundle)
    if flow is None:
        raise RefusedError(
            f"{name!r} was not built from a recipe or a script; change its source file and add that again"
        )
    if isinstance(flow, BlockFlow) and (edit.script or edit.parameters or edit.removed):
        raise RefusedError(
            f"{name!r} is a block flow, whose variables and blocks are in its file; change the file and add it again "
            f"('uncaged-workflow export {name}' writes the file)"
        )
    flow = replace(flow, name=name)
    if edit.description is not None:
        flow = replace(flow, description=edit.description)
    flow = with_parameters(flow, edit)
    if edit.script is not None:  # after the parameters, which the arguments refer to
        flow = with_script(flow, edit.script)
    flow = with_patterns(flow, edit)
    return build_flow(with_policy(flow, edit), KNOWN)


def add_patterns(engine: Engine, name: str, patterns: Iterable[str]) -> Added:
    """Add patterns to a flow, as a new version.

    Raises:
        RefusedError, UsageError, BundleError: as `edited_bundle` and `Engine.add`.
    """
    bundle = engine.bundle(name)
    built = edited_bundle(bundle, name, FlowEdit(patterns=tuple(patterns)))
    # a pattern needs no permissions
    return engine.add(name, built.source, accept=lambda widened: not widened, follows=bundle.hash)


def with_script(flow: RecipeFlow, file: Path) -> RecipeFlow:
    """Return the flow with another script, whose arguments are bound to the flow's parameters."""
    from uncaged_bundles.builders.inference.inference import infer_arguments
    from uncaged_bundles.builders.recipes.flows import ForeignFlow, ScriptFlow, TaskFlow, WebFlow
    from uncaged_bundles.builders.recipes.recipe import script_text
    from uncaged_bundles.builders.recipes.web_recipe import policy_of

    found = read_script(read_flow(file), file, flow.name)
    kept = {"description", "display_name", "source", "patterns", "aliases", "examples", "name"}
    shared: dict[str, Any] = {field: getattr(flow, field) for field in kept}
    match flow, found:
        case (ScriptFlow(), ScriptFlow()):
            arguments = infer_arguments(found.language, found.body, flow.parameters)
            return replace(flow, language=found.language, body=found.body, arguments=arguments)
        case (TaskFlow(), TaskFlow()):
            return replace(flow, script=found.script)
        case (WebFlow(), WebFlow()):
            return replace(flow, script=found.script, steps=())
        case (ForeignFlow(kind="web", scope=scope), WebFlow()) if scope is not None:
            policy = policy_of(scope, {}, (flow.name,))
            more: dict[str, Any] = {"script": found.script, "scope": scope, "policy": policy}
            return WebFlow(**shared, parameters=flow.parameters, **more)
        case (ForeignFlow(), TaskFlow()):
            return TaskFlow(
                **shared, parameters=flow.parameters, script=script_text(found.script, (flow.name,))
            )
        case _:
            web = isinstance(flow, WebFlow) or getattr(flow, "kind", "") == "web"
            what = (
                "a web flow's script (async def execute(browser, params))"
                if web
                else "a task's script (async def execute(api, params))"
                if isinstance(flow, TaskFlow | ForeignFlow)
                else "a script"
            )
            raise UsageError(
                f"{flow.name!r} needs {what}, which {str(file)!r} is not; add that file as a separate flow"
            )


def with_parameters(flow: RecipeFlow, edit: FlowEdit) -> RecipeFlow:
    """Return the flow with parameters changed, added or removed."""
    if not (edit.parameters or edit.removed):
        return flow
    from uncaged_bundles.builders.recipes.flows import ScriptFlow
    from uncaged_bundles.builders.recipes.parameters import list_fields, write_schema

    listed = {str(part["name"]): part for part in list_fields(flow.parameters)}
    for name in edit.removed:
        if name not in listed:
            raise NotFoundError(f"{flow.name} has no parameter {name!r}{nearest(name, listed)}")
        del listed[name]
    for change in edit.parameters:
        place, equals, text = change.partition("=")
        name, _, field = place.partition(".")
        if not equals or field not in PARAMETER_FIELDS:
            raise UsageError(
                f"--set-parameter {change!r} is not NAME.FIELD=VALUE; fields: {', '.join(PARAMETER_FIELDS)}"
            )
        part = listed.setdefault(name, {"name": name, "type": "string", "required": False})
        value = _value(field, text)
        if field in RULES:
            rules = part.get("validation")
            part["validation"] = {**(rules if isinstance(rules, Mapping) else {}), field: value}
        else:
            part[field] = value
    changed = replace(
        flow, parameters=write_schema(list(listed.values()), (flow.name, "parameters"))
    )
    if isinstance(changed, ScriptFlow):
        arguments = tuple(
            part
            for part in changed.arguments
            if not (isinstance(part, Mapping) and part.get("param") in edit.removed)
        )
        return replace(changed, arguments=arguments)
    return changed


def with_patterns(flow: RecipeFlow, edit: FlowEdit) -> RecipeFlow:
    """Return the flow with sentence patterns added or removed."""
    from uncaged_bundles.builders.recipes.grammar_check import check_pattern

    properties = flow.parameters.get("properties", {})
    names = list(properties) if isinstance(properties, Mapping) else []
    for pattern in edit.dropped:
        if pattern not in flow.patterns:
            raise NotFoundError(
                f"{flow.name} has no pattern {pattern!r}; 'uncaged-workflow show {flow.name}' lists them"
            )
    patterns = [pattern for pattern in flow.patterns if pattern not in edit.dropped]
    patterns += [pattern for pattern in edit.patterns if pattern not in patterns]
    for index, pattern in enumerate(patterns):
        check_pattern(pattern, names, (flow.name, "patterns", index))
    return replace(
        flow,
        patterns=tuple(patterns),
        aliases=tuple(alias for alias in flow.aliases if alias in patterns),
    )


def with_policy(flow: RecipeFlow, edit: FlowEdit) -> RecipeFlow:
    """Return the flow with another policy, or with permissions added."""
    from uncaged_bundles.builders.recipes.flows import ScriptFlow, TaskFlow, WebFlow

    policy_from_file = None if edit.policy_file is None else read_file(edit.policy_file)
    match flow:
        case ScriptFlow():
            limits = (
                dict(flow.policy) if policy_from_file is None else _script_limits(policy_from_file)
            )
            additions = {
                "executables": edit.commands,
                "read": edit.reads,
                "write": edit.writes,
                "modules": edit.modules,
                "network": edit.hosts,
            }
            if edit.flows:
                raise UsageError(f"--allow-flow is for task flows; {flow.name} is a script flow")
            return replace(flow, policy=_extended(limits, additions))
        case TaskFlow():
            return replace(flow, policy=_more_for_task(flow, policy_from_file, edit))
        case WebFlow():
            if edit.commands or edit.reads or edit.writes or edit.modules or edit.flows:
                raise UsageError(f"{flow.name} is a web flow; only --allow-host is for it")
            whole = flow.policy if policy_from_file is None else policy_from_file
            inner = _mapping(whole.get("browser", whole))
            return replace(flow, policy=_extended(inner, {"hosts": edit.hosts}))
        case _:
            if (
                policy_from_file is not None
                or edit.commands
                or edit.reads
                or edit.writes
                or edit.modules
                or edit.hosts
                or edit.flows
            ):
                raise UsageError(_policy_refusal(flow))
            return flow


def _policy_refusal(flow: RecipeFlow) -> str:
    from uncaged_bundles.builders.blocks.block_flow import BlockFlow

    if isinstance(flow, BlockFlow):
        return f"the policy of {flow.name} comes from its blocks; change its file, then: uncaged-workflow add {flow.name} FILE"
    return f"{flow.name} is stored but cannot run, so it needs no policy; give it a script first: --script FILE.py"


def _more_for_task(
    flow: Any, policy_from_file: Mapping[str, object] | None, edit: FlowEdit
) -> Mapping[str, object]:
    from uncaged_bundles.builders.scripts.task_check import check_script, infer_policy

    policy: dict[str, object] = dict(infer_policy(check_script(flow.script, flow.name)))
    if policy_from_file is not None:
        policy = dict(policy_from_file)
    elif flow.policy is not None:
        policy = {
            **{kind: limits for kind, limits in policy.items() if edit.script is not None},
            **flow.policy,
        }
    script = {
        "executables": edit.commands,
        "read": edit.reads,
        "write": edit.writes,
        "modules": edit.modules,
    }
    if any(script.values()):
        policy["script"] = _extended(_mapping(policy.get("script")), script)
    if edit.hosts:
        kinds = [kind for kind in ("http", "fetch") if kind in policy] or ["http"]
        for kind in kinds:
            policy[kind] = _extended(_mapping(policy.get(kind)), {"hosts": edit.hosts})
    if edit.flows:
        policy["flow"] = _extended(_mapping(policy.get("flow")), {"names": edit.flows})
    return policy


def _script_limits(policy: Mapping[str, object]) -> dict[str, object]:
    """Return the limits of the script effect, from a whole policy or from these limits alone."""
    return dict(_mapping(policy["script"])) if set(policy) == {"script"} else dict(policy)


def _extended(
    limits: Mapping[str, object], additions: Mapping[str, tuple[str, ...]]
) -> dict[str, object]:
    """Return the limits with values added to their lists, without duplicates."""
    found = dict(limits)
    for key, values in additions.items():
        if values:
            former = found.get(key)
            found[key] = list(
                dict.fromkeys([*(former if isinstance(former, list) else []), *values])
            )
    return found


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _value(field: str, text: str) -> object:
    if field in ("required", "pathMustExist"):
        if text.lower() not in ("true", "false"):
            raise UsageError(f"{field} must be true or false, not {text!r}")
        return text.lower() == "true"
    if field == "allowedValues" and text.startswith("["):
        try:
            return parse_json(text)
        except ValueError as problem:
            raise UsageError(
                f"allowedValues must be a JSON list or values separated by commas, not {text!r}: {problem}"
            ) from problem
    return [word.strip() for word in text.split(",")] if field == "allowedValues" else text
