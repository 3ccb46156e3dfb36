"""A script flow becomes one file: its descriptor, the script word for word, and the driver that
hands it the parameters of a run.
"""

from __future__ import annotations

from uncaged_bundles.carried import script as carried_script
from uncaged_bundles.limits import KNOWN_EFFECTS, EffectKinds

from ..recipes.described import describe
from ..recipes.flows import ScriptFlow
from ..text.layout import write_driven
from ..text.literal import write_literal
from ..workflow import check_built
from .task_check import parse_script

_HEAD = "# The script flow {name!r}, as uncaged-workflow built it: change it with 'uncaged-workflow edit {name}', which builds it again."


def build_script(flow: ScriptFlow, known_effects: EffectKinds = KNOWN_EFFECTS) -> bytes:
    """Return the bundle of a script flow, validated; a Python script that does not parse is
    refused.
    """
    if flow.language == "python":
        parse_script(flow.body, flow.name)
    descriptor = describe(flow, kind="script", policy={"script": dict(flow.policy)})
    script: dict[str, object] = {"language": flow.language, "body": flow.body}
    if flow.repeat:
        script["repeat"] = True
    rest = (
        f"script = {write_literal(script, used=len('script = '))}\n"
        f"arguments = {write_literal(list(flow.arguments), used=len('arguments = '))}\n\n\n"
        "def run(input, options):\n"
        f'    return (yield from drive_script(input, name="{flow.name}", script=script, arguments=arguments, form="{flow.form}"))\n'
    )
    source = write_driven(
        _HEAD.format(name=flow.name), descriptor, carried_script.__name__, ["drive_script"], rest
    )
    return check_built(source, flow.name, known_effects)
