"""A task flow becomes one file: its descriptor, the carried driver, and the author's script word
for word between two comments.
"""

from __future__ import annotations

from uncaged_bundles.carried import task as carried_task
from uncaged_bundles.errors import BundleError
from uncaged_bundles.limits import KNOWN_EFFECTS, EffectKinds

from ..recipes.described import describe
from ..recipes.flows import TaskFlow
from ..text.layout import write_driven
from ..workflow import check_built
from .task_check import check_script, infer_policy

BEGIN = "# The script, as it was written."
END = "# The end of the script."
_HEAD = "# The task flow {name!r}, as uncaged-workflow built it: change it with 'uncaged-workflow edit {name}', which builds it again."


def build_task(flow: TaskFlow, known_effects: EffectKinds = KNOWN_EFFECTS) -> bytes:
    """Return the bundle of a task flow, validated.

    Raises:
        BundleError: the script breaks a rule; line and column are the script's own.
    """
    text = flow.script.rstrip("\n")
    if BEGIN in text or END in text:
        raise BundleError(
            f"{flow.name}: the line {BEGIN!r} or {END!r} stands in the script; take it out"
        )
    tree = check_script(text, flow.name)
    policy = infer_policy(tree) if flow.policy is None else flow.policy
    descriptor = describe(flow, kind="task", policy=policy)
    rest = f'{BEGIN}\n\n{text}\n\n{END}\n\n\ndef run(input, options):\n    return (yield from drive_task(execute, input, "{flow.name}"))\n'
    source = write_driven(
        _HEAD.format(name=flow.name),
        descriptor,
        carried_task.__name__,
        ["drive_task", "print"],
        rest,
    )
    return check_built(source, flow.name, known_effects)


def script_in(source: str) -> str | None:
    """Return the script inside a task flow's bundle."""
    head, begin, rest = source.partition(f"{BEGIN}\n\n")
    text, end, _ = rest.partition(f"\n\n{END}\n")
    return f"{text}\n" if begin and end and head else None
