"""Wording of a captured flow by a model, and the other values of its second run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from uncaged_bundles.errors import EnvironmentLacks, UsageError, without_thread

from .asked_model import chosen_model, model_session
from .catalog import is_installed
from .display.output import note

if TYPE_CHECKING:
    from uncaged_capture.polishing import PatternWords
    from uncaged_capture.values import Parameter
    from uncaged_capture.wording import Wording
    from uncaged_engine.api import Engine

ENOUGH_WORDS = 2
"""Words that a pattern of a model requires at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureExample:
    """Values for the second run of a proof: those that differ. kept_if: example of a model that the
    wording gets if the run succeeds; None for values of a person.
    """

    values: Mapping[str, object]
    kept_if: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WordedFlow:
    """A captured flow whose wording a model may improve.

    prompt: of its thread. steps: one line each. schema: of its parameters. recorded: their values.
    """

    prompt: str
    wording: Wording
    steps: Sequence[str]
    parameters: Sequence[Parameter]
    schema: Mapping[str, object]
    recorded: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordingOptions:
    """Options about the wording, and the values of the second run.

    model: None for the default one. has_name: the person chose the flow's name. examples: texts
    ``NAME=VALUE``.
    """

    polish: bool
    model: str | None
    has_name: bool
    examples: Sequence[str]

    def chosen(self, engine: Engine, flow: WordedFlow) -> tuple[Wording, CaptureExample | None]:
        """Return the wording of a flow, and the values of its second run, if any."""
        example = chosen_example(engine, flow, self.examples)
        if not self.polish:
            return flow.wording, example
        wording, found = polished_words(engine, flow, model=self.model, has_name=self.has_name)
        return wording, example or found


def polished_words(
    engine: Engine, flow: WordedFlow, *, model: str | None, has_name: bool
) -> tuple[Wording, CaptureExample | None]:
    """Ask a model once for a better wording; return it, with an example if the answer has one. If
    the model fails, or an answer does not hold, that is printed, and the prompt's wording stays.

    Args:
        model: None for the default one. has_name: the person chose the flow's name.
    """
    from uncaged_capture.polishing import Polishing, polished, question_of
    from uncaged_engine.services.secrets import known_secrets
    from uncaged_models.errors import ModelFailed

    known = known_secrets(engine.config, os.environ)
    name = flow.wording.name
    try:
        chosen = chosen_model(engine.config, model)
        note(f"asking the model {chosen.name} for a name, a description and patterns …")
        question = question_of(name, flow.prompt, flow.steps, flow.parameters, known)
        answer = model_session(chosen).ask(question)
    except (EnvironmentLacks, ModelFailed, UsageError) as exc:
        note("the wording is that of the prompt: ", without_thread(exc))
        return flow.wording, None
    if not answer.fits or not isinstance(answer.value, Mapping):
        note("the wording is that of the prompt: the model's answer does not fit: ", answer.problem)
        return flow.wording, None
    found = polished(
        flow.wording,
        answer.value,
        flow.recorded,
        Polishing(
            has_name=has_name,
            is_taken=lambda text: engine.registry.flow(text) is not None,
            secrets=known,
            misread=lambda words: misread(engine, name, flow.schema, words),
        ),
    )
    for line in found.refused:
        note("not used: ", line)
    examples = (CaptureExample(values=one.values, kept_if=one.example) for one in found.untried)
    return found.wording, next(examples, None)


def misread(engine: Engine, flow: str, schema: Mapping[str, object], words: PatternWords) -> str:
    """Return why a pattern cannot be used; "" if it reads its sentence as the flow with these
    values, takes no sentence from another flow, and requires enough words.
    """
    if not is_installed("patterns"):
        return "no grammar is installed that could check it"
    from uncaged_dispatcher.readings.interpreter import Interpreter
    from uncaged_dispatcher.readings.pattern_sources import PatternProposal
    from uncaged_dispatcher.readings.pattern_suggestions import checked_patterns

    proposal = PatternProposal(
        pattern=words.pattern, sentence=words.sentence, params=words.values, origin="model"
    )
    engine.read_sentences()
    with closing(Interpreter(engine)) as interpreter:
        checked = checked_patterns(interpreter, flow, schema, [proposal], ENOUGH_WORDS)
    return (checked[0].refused or "") if checked else "the flow reads its sentence already"


def chosen_example(engine: Engine, flow: WordedFlow, pairs: Iterable[str]) -> CaptureExample | None:
    """Return the values of ``--example NAME=VALUE`` that differ from the recorded ones; None
    without any.

    Raises:
        UsageError: they are no values of the flow, or the recorded ones.
    """
    from uncaged_capture.other_values import other_values
    from uncaged_engine.services.secrets import known_secrets

    from .inputs.parameters import declared_name, parse_value
    from .inputs.recording_answers import named_values

    named = named_values(pairs, "--example")
    if not named:
        return None
    values = {}
    for written, text in named.items():
        name = declared_name(written, flow.schema)
        # a name that is no parameter is refused below, with those that are
        values[name] = parse_value(name, text, flow.schema) if name in flow.recorded else text
    known = known_secrets(engine.config, os.environ)
    return CaptureExample(values=other_values(flow.recorded, values, known))
