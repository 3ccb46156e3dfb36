"""Bundles of script, task and foreign flows: the descriptor, the carried driver, and the author's
script word for word.
"""

from __future__ import annotations

from uncaged_bundles.carried import script as carried_script
from uncaged_bundles.carried import task as carried_task
from uncaged_bundles.errors import BundleError

from ..recipes.descriptor import describe
from ..recipes.flows import ForeignFlow, RecipeFlow, ScriptFlow, TaskFlow
from ..text.layout import write_driven
from ..text.literal import write_constant
from .task_check import check_script, infer_policy, parse_script

BEGIN = "# The script, as it was written."
END = "# The end of the script."
_HEAD = "# The {kind} flow {name!r}, as uncaged-workflow built it: change it with 'uncaged-workflow edit {name}', which builds it again."


def write_script(flow: ScriptFlow) -> bytes:
    """Return the bundle of a script flow, not yet validated; a Python script that does not parse is
    refused.
    """
    if flow.language == "python":
        parse_script(flow.body, flow.name)
    descriptor = describe(flow, kind="script", policy={"script": dict(flow.policy)})
    script: dict[str, object] = {"language": flow.language, "body": flow.body}
    if flow.repeat:
        script["repeat"] = True
    rest = (
        f"{write_constant('script', script)}\n{write_constant('arguments', list(flow.arguments))}\n\n\n"
        "def run(input, options):\n"
        f'    return (yield from drive_script(input, name="{flow.name}", script=script, arguments=arguments, form="{flow.form}"))\n'
    )
    return write_driven(
        bundle_head(flow, "script"), descriptor, carried_script.__name__, ["drive_script"], rest
    )


def write_task(flow: TaskFlow) -> bytes:
    """Return the bundle of a task flow, not yet validated.

    Raises:
        BundleError: the script breaks a rule; line and column are the script's own.
    """
    text = flow.script.rstrip("\n")
    script = marked(text, flow.name)
    tree = check_script(text, flow.name)
    policy = infer_policy(tree) if flow.policy is None else flow.policy
    descriptor = describe(flow, kind="task", policy=policy)
    rest = f'{script}\n\n\ndef run(input, options):\n    return (yield from drive_task(execute, input, "{flow.name}"))\n'
    return write_driven(
        bundle_head(flow, "task"), descriptor, carried_task.__name__, ["drive_task", "print"], rest
    )


def marked(text: str, name: str) -> str:
    """Return a script between the lines that mark its place in a bundle.

    Raises:
        BundleError: it has such a line itself.
    """
    if BEGIN in text or END in text:
        raise BundleError(
            f"{name}: the script has the line {BEGIN!r} or {END!r}, which marks its place in a bundle; take it out"
        )
    return f"{BEGIN}\n\n{text}\n\n{END}"


def script_in(source: str) -> str | None:
    """Return the script inside a task flow's bundle."""
    head, begin, rest = source.partition(f"{BEGIN}\n\n")
    text, end, _ = rest.partition(f"\n\n{END}\n")
    return f"{text}\n" if begin and end and head else None


def write_foreign(flow: ForeignFlow) -> bytes:
    """Return a bundle that keeps a flow in a language that is not run here, not yet validated; it
    fails when it is run.
    """
    descriptor = describe(flow, kind=flow.kind, policy={}, unsupported=flow.language)
    kept: dict[str, object] = {"language": flow.language, "text": flow.text}
    if flow.scope is not None:
        kept["scope"] = flow.scope
    text = (
        f"# The {flow.kind} flow {flow.name!r}, kept by uncaged-workflow as it came. Its language, {flow.language}, is not run here.\n\n"
        f"{write_constant('descriptor', descriptor)}\n\n{write_constant('kept', kept)}\n\n\n"
        "def run(input, options):\n"
        f'    raise NotImplementedError("{flow.language} is not run here")\n'
        "    yield\n"
    )
    return text.encode()


def bundle_head(flow: RecipeFlow, kind: str) -> str:
    """Return the first line of a built bundle."""
    return _HEAD.format(kind=kind, name=flow.name)
