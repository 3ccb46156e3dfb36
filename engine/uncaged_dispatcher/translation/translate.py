"""Translation of a sentence by the configured model: runs the shipped flow `interpret` and reads
its result as calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from uncaged_bundles.errors import (
    EnvironmentLacks,
    NotFoundError,
    UncagedError,
    UsageError,
    without_thread,
)
from uncaged_bundles.ids import ThreadId
from uncaged_bundles.records import dataclass, field, replace
from uncaged_engine.api import Engine, RunOptions
from uncaged_engine.services.threads import mark_seen

from ..calls import REASON, Call, Interpretation, Miss, Offer, Question

FLOW = "interpret"


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationContext:
    """Context that the model gets with a sentence.

    exchanges: the last requests and results. entities: the nearest things named before, in the
    order of their numbers. packs: those of the activity, which are tried first, and alone if
    `exclusive`. clarified: questions that the person has answered. attachments: name and text.
    """

    exchanges: Sequence[Mapping[str, object]] = ()
    entities: Sequence[Mapping[str, object]] = ()
    activity: Mapping[str, object] | None = None
    packs: Sequence[str] = ()
    exclusive: bool = False
    instructions: str = ""
    clarified: Sequence[Mapping[str, object]] = ()
    attachments: Sequence[Mapping[str, object]] = ()

    def params(self) -> dict[str, object]:
        """Return the parameters of `interpret`; empty ones are left out."""
        fields = {
            "exchanges": list(self.exchanges),
            "entities": list(self.entities),
            "activity": self.activity,
            "packs": list(self.packs),
            "exclusive": self.exclusive,
            "instructions": self.instructions,
            "clarified": list(self.clarified),
            "attachments": list(self.attachments),
        }
        return {**{name: value for name, value in fields.items() if value}, "attended": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Translator:
    """Translations in one store. on_start: called with the id of each thread."""

    engine: Engine
    options: RunOptions = field(default_factory=RunOptions)
    on_start: Callable[[ThreadId], None] = lambda _thread: None

    def translate(
        self, sentence: str, context: TranslationContext, missed: Miss
    ) -> Interpretation | Question | Miss:
        """Ask the model for the calls of a sentence. A sentence that no flow can do becomes a call
        of `reason`; a miss says why there are no calls: no model, or an answer that is none.

        Args:
            missed: of the rules; its advice is kept.
        """
        begun = time.monotonic()
        if (lack := self.lack()) is not None:
            return replace(missed, why=f"{missed.why}, and {lack}")
        try:
            thread = self.engine.run(
                FLOW, prompt=sentence, params=context.params(), options=self.options
            )
        except UncagedError as exc:
            return replace(missed, why=f"{missed.why}, and the model was not asked: {exc}")
        self.on_start(thread)
        for _event in self.engine.follow(thread):
            pass
        view = self.engine.thread(thread)
        mark_seen(self.engine.store, thread, view.summary.updated_ms)
        result = (view.end or {}).get("result")
        if view.summary.status != "completed" or not isinstance(result, Mapping):
            why = view.summary.message or view.summary.status
            return replace(
                missed,
                why=f"the model's answer could not be used: {why}; see 'uncaged-workflow thread {thread}'",
            )
        return self._read(missed, result, thread, (time.monotonic() - begun) * 1000)

    def lack(self) -> str | None:
        """Return what is missing for a translation, with the next step; None if nothing is."""
        # pydantic and the settings of models, 40 ms: only a sentence that no rule reads needs them
        from uncaged_models.choice import choose, choose_name

        try:
            self.engine.registry.resolve(FLOW)
            if self.engine.is_shared:
                return None  # the worker's settings choose the model
            name = choose_name(None, [], self.engine.config, self.options.environment)
            choose(name, self.engine.config, self.options.environment)
        except NotFoundError:
            return f"the flow {FLOW!r} was removed, which asks a model"
        except (EnvironmentLacks, UsageError) as exc:
            return without_thread(exc)
        return None

    def _read(
        self, missed: Miss, result: Mapping[str, Any], thread: ThreadId, elapsed_ms: float
    ) -> Interpretation | Question | Miss:
        match result.get("data"):
            case {"question": str(text), "choices": list(choices)} if choices:
                return _question(missed.sentence, text, map(str, choices), thread, elapsed_ms)
            case {"question": str(text)}:
                return replace(
                    missed, why=f"the model asks: {text} Write the sentence with the answer."
                )
            case {"calls": list(listed), "unknown": []} if listed:
                calls = tuple(map(Call.read, listed))
                return _by_model(calls, thread, elapsed_ms)
            case {"calls": [], "unknown": list()} if self._reasons():
                return _by_model((Call(flow=REASON),), thread, elapsed_ms)
            case _:
                pass
        message = result.get("message") or "no flow can do this"
        return replace(missed, why=f"{message} (thread {thread})", elapsed_ms=elapsed_ms)

    def _reasons(self) -> bool:
        flow = self.engine.registry.flow(REASON)
        return flow is not None and flow.enabled


def _by_model(calls: tuple[Call, ...], thread: ThreadId, elapsed_ms: float) -> Interpretation:
    return Interpretation(calls=calls, by="model", rule=f"thread {thread}", elapsed_ms=elapsed_ms)


def _question(
    sentence: str, text: str, choices: Iterable[str], thread: ThreadId, elapsed_ms: float
) -> Question:
    """Return a question of the model; its choices have no calls before it is asked again."""
    none = _by_model((), thread, 0.0)
    return Question(
        kind="clarification",
        sentence=sentence,
        text=text,
        choices=tuple(
            Offer(id=str(number), label=label, interpretation=none)
            for number, label in enumerate(choices, 1)
        ),
        elapsed_ms=elapsed_ms,
    )
