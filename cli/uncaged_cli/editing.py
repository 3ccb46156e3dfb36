"""A flow is changed by taking it out of its bundle, changing one thing after the other, and
building it again.
"""

from __future__ import annotations

from collections.abc import Mapping
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
class Edit:
    """What is to be changed. parameters: ``NAME.FIELD=VALUE``. policy_file: the whole policy; what
    is allowed besides is added to it.
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


def edited(bundle: Bundle, name: str, edit: Edit) -> BuiltFlow:
    """Return the bundle of the changed flow.

    Raises:
        RefusedError: the bundle was not made from a recipe or a script. UsageError, BundleError: a
            change is wrong.
    """
    from uncaged_bundles.builders.blocks.block_flow import BlockFlow
    from uncaged_bundles.builders.recipes.recipe_flow import build_flow, flow_of
    from uncaged_engine.effect_kinds import KNOWN

    flow = flow_of(bundle)
    if flow is None:
        raise RefusedError(
            f"{name!r} came neither from a recipe nor from a script; change the file that it was built from, and add that again"
        )
    if isinstance(flow, BlockFlow) and (edit.script or edit.parameters or edit.removed):
        raise RefusedError(
            f"{name!r} is a block flow: its variables and blocks stand in its file; change that, and add it again "
            f"('uncaged-workflow export {name}' writes it)"
        )
    flow = replace(flow, name=name)
    if edit.description is not None:
        flow = replace(flow, description=edit.description)
    flow = with_parameters(flow, edit)
    if edit.script is not None:  # after the parameters: the script's places are bound to them
        flow = with_script(flow, edit.script)
    flow = with_patterns(flow, edit)
    return build_flow(with_policy(flow, edit), KNOWN)


def with_script(flow: RecipeFlow, file: Path) -> RecipeFlow:
    """Return the same flow with another script, whose command line is bound to the flow's
    parameters.
    """
    from uncaged_bundles.builders.inference.inference import infer_arguments
    from uncaged_bundles.builders.recipes.flows import ForeignFlow, ScriptFlow, TaskFlow
    from uncaged_bundles.builders.recipes.recipe import script_text

    found = read_script(read_flow(file), file, flow.name)
    kept = {"description", "display_name", "source", "patterns", "aliases", "examples", "name"}
    shared: dict[str, Any] = {field: getattr(flow, field) for field in kept}
    match flow, found:
        case (ScriptFlow(), ScriptFlow()):
            arguments = infer_arguments(found.language, found.body, flow.parameters)
            return replace(flow, language=found.language, body=found.body, arguments=arguments)
        case (TaskFlow(), TaskFlow()):
            return replace(flow, script=found.script)
        case (ForeignFlow(), TaskFlow()):
            return TaskFlow(
                **shared, parameters=flow.parameters, script=script_text(found.script, (flow.name,))
            )
        case _:
            what = (
                "a task's script (async def execute(api, params))"
                if isinstance(flow, TaskFlow | ForeignFlow)
                else "a script"
            )
            raise UsageError(
                f"{flow.name!r} needs {what}, which {str(file)!r} is not; add that as a flow of its own"
            )


def with_parameters(flow: RecipeFlow, edit: Edit) -> RecipeFlow:
    """The same flow with parameters changed, added or taken out."""
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
        handed_over = tuple(
            part
            for part in changed.arguments
            if not (isinstance(part, Mapping) and part.get("param") in edit.removed)
        )
        return replace(changed, arguments=handed_over)
    return changed


def with_patterns(flow: RecipeFlow, edit: Edit) -> RecipeFlow:
    """The same flow with sentence patterns added or taken out."""
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


def with_policy(flow: RecipeFlow, edit: Edit) -> RecipeFlow:
    """The same flow with another policy, or with more allowed."""
    from uncaged_bundles.builders.recipes.flows import ScriptFlow, TaskFlow

    given = None if edit.policy_file is None else read_file(edit.policy_file)
    match flow:
        case ScriptFlow():
            limits = dict(flow.policy) if given is None else _script_limits(given)
            wanted = {
                "executables": edit.commands,
                "read": edit.reads,
                "write": edit.writes,
                "modules": edit.modules,
                "network": edit.hosts,
            }
            if edit.flows:
                raise UsageError(f"--allow-flow is for tasks; {flow.name} is a script")
            return replace(flow, policy=_more(limits, wanted))
        case TaskFlow():
            return replace(flow, policy=_more_for_task(flow, given, edit))
        case _:
            if (
                given is not None
                or edit.commands
                or edit.reads
                or edit.writes
                or edit.modules
                or edit.hosts
                or edit.flows
            ):
                raise UsageError(_without_policy(flow))
            return flow


def _without_policy(flow: RecipeFlow) -> str:
    from uncaged_bundles.builders.blocks.block_flow import BlockFlow

    if isinstance(flow, BlockFlow):
        return f"the policy of {flow.name} comes from its blocks; change its file, then: uncaged-workflow add {flow.name} FILE"
    return f"{flow.name} is only kept, not run, and needs no policy; give it a script first: --script FILE.py"


def _more_for_task(
    flow: Any, given: Mapping[str, object] | None, edit: Edit
) -> Mapping[str, object]:
    from uncaged_bundles.builders.scripts.task_check import check_script, infer_policy

    policy: dict[str, object] = dict(infer_policy(check_script(flow.script, flow.name)))
    if given is not None:
        policy = dict(given)
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
        policy["script"] = _more(_mapping(policy.get("script")), script)
    if edit.hosts:
        kinds = [kind for kind in ("http", "fetch") if kind in policy] or ["http"]
        for kind in kinds:
            policy[kind] = _more(_mapping(policy.get(kind)), {"hosts": edit.hosts})
    if edit.flows:
        policy["flow"] = _more(_mapping(policy.get("flow")), {"names": edit.flows})
    return policy


def _script_limits(policy: Mapping[str, object]) -> dict[str, object]:
    """The limits of the script effect, from a whole policy or from these limits alone."""
    return dict(_mapping(policy["script"])) if set(policy) == {"script"} else dict(policy)


def _more(limits: Mapping[str, object], wanted: Mapping[str, tuple[str, ...]]) -> dict[str, object]:
    """Limits with values added to their lists; each value once."""
    found = dict(limits)
    for key, values in wanted.items():
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
            raise UsageError(f"{field} is true or false, not {text!r}")
        return text.lower() == "true"
    if field == "allowedValues" and text.startswith("["):
        try:
            return parse_json(text)
        except ValueError as problem:
            raise UsageError(
                f"allowedValues is a JSON list or words with commas between, not {text!r}: {problem}"
            ) from problem
    return [word.strip() for word in text.split(",")] if field == "allowedValues" else text
