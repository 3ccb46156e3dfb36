"""A flow in a language that is not run here is kept whole, so that nothing is lost, and says at
every turn what would make it run.
"""

from __future__ import annotations

from uncaged_bundles.limits import KNOWN_EFFECTS, EffectKinds

from ..recipes.described import describe
from ..recipes.flows import ForeignFlow
from ..text.literal import write_literal
from ..workflow import check_built


def build_foreign(flow: ForeignFlow, known_effects: EffectKinds = KNOWN_EFFECTS) -> bytes:
    """Return the bundle that keeps such a flow."""
    descriptor = describe(flow, kind=flow.kind, policy={}, unsupported=flow.language)
    kept: dict[str, object] = {"language": flow.language, "text": flow.text}
    if flow.scope is not None:
        kept["scope"] = flow.scope
    text = (
        f"# The {flow.kind} flow {flow.name!r}, kept by uncaged-workflow as it came. Its language, {flow.language}, is not run here.\n\n"
        f"descriptor = {write_literal(descriptor, used=len('descriptor = '))}\n\n"
        f"kept = {write_literal(kept, used=len('kept = '))}\n\n\n"
        "def run(input, options):\n"
        f'    raise NotImplementedError("{flow.language} is not run here")\n'
        "    yield\n"
    )
    return check_built(text.encode(), flow.name, known_effects)
