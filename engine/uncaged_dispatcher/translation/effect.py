"""The effect `catalog`: the flows of this store that are nearest to a sentence.

``{"catalog": {"sentence", "packs"?: [text, …], "without"?: [flow, …], "limit"?}}`` answers
``{"flows": [{"flow", "pack", "description", "parameters", "patterns"}]}``, best first. Disabled
flows are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from uncaged_bundles import shapes
from uncaged_bundles.limits import Limits
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.registry import Registry
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome

from .catalog import Catalog

FEW, MOST = 12, 50
Texts = Annotated[Sequence[str], shapes.texts]


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogLimits(Limits):
    """Limits of the kind: none."""

    meaning = "read the names, descriptions and parameters of your flows"


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogBody:
    sentence: Annotated[str, shapes.filled]
    packs: Texts = ()
    without: Texts = ()
    limit: Annotated[int, shapes.whole_between(1, MOST)] = FEW


class CatalogHandler(Handler):
    kind = "catalog"
    limits = CatalogLimits
    answers: Mapping[str, object] = {
        "type": "object",
        "required": ["flows"],
        "properties": {"flows": {"type": "array"}},
    }
    recovery: Rule = "repeat"

    def perform(self, body: object, context: EffectContext) -> Outcome:
        options = read_body("catalog", CatalogBody, body)
        if isinstance(options, Failure):
            return options
        flows = {
            flow.name: flow.hash
            for flow in Registry(context.store).read().flows.values()
            if flow.enabled
        }
        found = Catalog(context.store, flows).search(
            options.sentence, packs=options.packs, without=options.without, limit=options.limit
        )
        return Answer(fields={"outcome": {"flows": [entry.document() for entry in found]}})
