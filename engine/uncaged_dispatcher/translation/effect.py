"""The effect `catalog`: the flows of this store that are nearest to a sentence.

``{"catalog": {"sentence", "packs"?: [text, …], "without"?: [flow, …], "limit"?}}`` answers
``{"flows": [{"flow", "pack", "description", "parameters", "patterns"}], "ambiguous"?, "ask"?,
"note"?}``, best first. Disabled flows are left out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from uncaged_bundles import shapes
from uncaged_bundles.errors import EnvironmentLacks, UsageError, without_thread
from uncaged_bundles.limits import Limits
from uncaged_bundles.records import dataclass
from uncaged_engine.door.bodies import read_body
from uncaged_engine.door.effects import EffectContext, Handler, Rule
from uncaged_engine.door.outcomes import Answer, Failure, Outcome, Void

from .catalog import Catalog

if TYPE_CHECKING:
    from uncaged_models.embeddings import EmbeddingClient

FEW, MOST = 12, 50
EMBEDDINGS_S = 15.0
"""Time for all requests to the embedding model; what it computed until then is kept."""
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
        try:
            embedder = _embedder(context)
            note = ""
        except (EnvironmentLacks, UsageError) as exc:
            embedder, note = None, f"embeddings were not used: {without_thread(exc)}"
        collisions = context.config.collisions
        found = Catalog(context.store).find(
            options.sentence,
            packs=options.packs,
            without=options.without,
            limit=options.limit,
            embedder=embedder,
            threshold=collisions.threshold,
        )
        if context.cancel.requested:
            return Void(word="killed", message="killed while flows were compared")
        note = note or found.note
        if note:
            context.progress({"text": note})
        outcome = {
            "flows": [entry.document() for entry in found.entries],
            **({"ambiguous": list(found.ambiguous)} if found.ambiguous else {}),
            **({"ask": True} if found.ambiguous and collisions.packs == "ask" else {}),
            **({"note": note} if note else {}),
        }
        usage = {} if embedder is None or not embedder.tokens else {"usage": embedder.usage()}
        return Answer(fields={"outcome": outcome, **usage})


def _embedder(context: EffectContext) -> EmbeddingClient | None:
    """Return the client of the configured embedding model; None if there is none."""
    if context.config.embeddings is None:
        return None
    # the settings of models, 30 ms: only where one is configured
    from uncaged_models.embeddings import EmbeddingClient, embedding_model

    model = embedding_model(context.config, context.environment)
    return (
        None
        if model is None
        else EmbeddingClient(
            model,
            context.config.for_agents(context.environment),
            deadline=time.monotonic() + EMBEDDINGS_S,
            on_cancel=context.cancel.on_request,
        )
    )
