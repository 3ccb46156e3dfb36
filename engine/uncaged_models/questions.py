"""One question to a configured model, without tools, that is answered with data of a schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.door.effects import Cancel
from uncaged_engine.door.observing import EffectObserver
from uncaged_engine.services import secrets

from .choice import ChosenModel
from .connection import open_client
from .conversation import Conversation, user_turn
from .data import DataSchema, ask_for_data
from .errors import ModelFailed
from .loop import LoopLimits, NoTools, ToolLoop
from .observing import TurnReports

TURNS = 4
"""Requests of one question: the first, two corrections, and a continuation."""

Report = Callable[[Mapping[str, object]], None]


def _unreported(_fields: Mapping[str, object]) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelQuestion:
    """Question to a model. prompt: without the rule of the answer's form, which follows from the
    schema.
    """

    system: str
    prompt: str
    schema: Mapping[str, Any]
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelData:
    """Answer of a model. value: None if no answer fitted the schema, then problem is that of the
    last one.
    """

    value: object
    fits: bool
    problem: str
    usage: Mapping[str, object]


class ModelSession:
    """A question under way. usage: so far, also of one that failed."""

    def __init__(
        self,
        chosen: ChosenModel,
        environment: Mapping[str, str],
        cancel: Cancel,
        *,
        record: Report = _unreported,
        progress: Report = _unreported,
        observer: EffectObserver | None = None,
    ) -> None:
        """Args:
        environment: the caller's, for proxies and certificates. record: writes an unusable answer
            to the journal. Both callbacks get fields without secrets.
        """
        self.usage: Mapping[str, object] = {}
        self._chosen = chosen
        self._environment = environment
        self._cancel = cancel
        self._record = record
        self._progress = progress
        self._observer = observer

    def ask(self, question: ModelQuestion) -> ModelData:
        """Ask the model until its answer fits, at most three times.

        Raises:
            EnvironmentLacks: the model is unavailable. ModelFailed: it refused or gave no answer.
            ConversationCancelled: the question was cancelled.
        """
        data_schema = DataSchema.of(question.schema)
        turn = user_turn(f"{question.prompt}\n\n{data_schema.rule}")
        with open_client(self._chosen.settings, self._environment) as (client, connection):
            loop = ToolLoop(
                client,
                Conversation(system=question.system, turns=[turn]),
                tools=NoTools(),
                limits=LoopLimits(seconds=question.timeout_s, turns=TURNS),
                connection=connection,
                cancel=self._cancel,
                progress=lambda fields: self._progress(self.redacted(fields)),
                schema=data_schema.schema,
                reports=TurnReports.of(self._observer, self._chosen.settings, self.redacted),
            )
            try:
                answer = ask_for_data(
                    loop, data_schema, lambda fields: self._record(self.redacted(fields))
                )
            except EnvironmentLacks as exc:
                raise EnvironmentLacks(self.redacted(str(exc))) from None
            except ModelFailed as exc:
                raise ModelFailed(self.redacted(str(exc)), kind=exc.kind) from None
            finally:
                self.usage = loop.meter.document()
        return ModelData(
            value=self.redacted(answer.value) if answer.fits else None,
            fits=answer.fits,
            problem=answer.problems[-1] if answer.problems else "",
            usage=self.usage,
        )

    def redacted(self, value: Any) -> Any:
        """Return a value without the secrets of the model's settings."""
        return cast("Any", secrets.redact(value, self._chosen.known))
