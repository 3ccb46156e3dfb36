"""The verb `explain`: shows how a sentence would be read by every tier; starts nothing."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..display import json_output
from ..display.output import PROGRAM, Styled, note, result
from ..inputs.options import conversation_option, json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine
from ..shell.at_verbs import MARK, spelled_out

if TYPE_CHECKING:
    from uncaged_dispatcher.readings.explanation import Explanation
    from uncaged_engine.api import Engine


@click.command()
@click.argument("sentence")
@conversation_option
@shared_option
@json_option
def command(sentence: str, conversation: str | None, as_json: bool) -> int:
    """Show how SENTENCE would be read in the conversation: every reading with its score, why the
    first one wins, and what a model would get if no rule reads it. Nothing is started, and no model
    is asked.
    """
    if sentence.lstrip().startswith(MARK):
        return _print_verb(sentence.strip(), as_json=as_json)
    engine = open_engine()
    engine.read_sentences()
    from uncaged_dispatcher.conversations.catalog import existing_conversation
    from uncaged_dispatcher.conversations.reader import sentence_context
    from uncaged_dispatcher.readings.explanation import explain
    from uncaged_dispatcher.readings.interpreter import Interpreter

    id = existing_conversation(engine.store, conversation)
    context = None if id is None else sentence_context(engine.store, id, Path.cwd())
    with closing(Interpreter(engine)) as interpreter:
        found = explain(interpreter, sentence, context=context)
    model = _model(engine, found)
    if as_json:
        json_output.document({**found.document(), "model": dict(model)})
        return 0
    _print(found, model)
    return 0


def _print(found: Explanation, model: Mapping[str, object]) -> None:
    from uncaged_dispatcher.calls import Miss

    for reading in found.readings:
        calls = ", then ".join(
            " ".join([call.flow, *(f"{name}={value}" for name, value in call.params.items())])
            for call in reading.calls
        )
        result(Styled(calls or "no call", "cyan"), f"  ({reading.by}: {reading.pattern})")
        rank = reading.rank
        result(
            f"    free text: {'yes' if rank.has_free_text else 'no'}, words: {-rank.fewer_parts},"
            f" required: {-rank.fewer_required_parts}, free characters: {rank.free_text}"
        )
        disabled = f"disabled: {reading.disabled}" if reading.disabled else None
        if lack := reading.refused or disabled or reading.away:
            result("    ", Styled(lack, "yellow"))
    if not found.readings:
        note("no pattern reads this sentence")
    result(found.why)
    match found.result:
        case Miss(nearest=nearest, corrected=corrected):
            if corrected is not None:
                result(f"did you mean: {corrected}")
            for near in nearest:
                result(f"near: {near.flow}: {near.patterns[0]}")
            asked = "a model would get" if model["asked"] else "a model would not be asked"
            result(f"{asked}: {model['why']}")
            if model["asked"]:
                result(", ".join(map(str, _listed(model["flows"]))))
        case _:
            pass


def _print_verb(sentence: str, *, as_json: bool) -> int:
    """Print the command that a line with a verb runs.

    Raises:
        UsageError: there is no such verb.
    """
    words = spelled_out(sentence)
    if as_json:
        json_output.document({"sentence": sentence, "verb": shlex.join(words)})
        return 0
    result(f"this is the command: {PROGRAM} {shlex.join(words)}")
    return 0


def _model(engine: Engine, found: Explanation) -> Mapping[str, object]:
    """Return whether the sentence would go to a model, and what would be sent."""
    from uncaged_dispatcher.calls import Miss

    if not isinstance(found.result, Miss):
        return {"asked": False, "why": "a rule reads the sentence", "flows": []}
    if found.result.enable is not None:
        why = f"a person disabled what reads it: {found.result.enable}"
        return {"asked": False, "why": why, "flows": []}
    from uncaged_dispatcher.translation.catalog import Catalog
    from uncaged_dispatcher.translation.effect import FEW
    from uncaged_dispatcher.translation.translate import Translator

    entries = Catalog(engine.store).search(found.sentence, limit=FEW)
    lack = Translator(engine=engine).lack()
    why = lack or "the sentence, and these flows with their parameters"
    return {"asked": lack is None, "why": why, "flows": [entry.flow for entry in entries]}


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []
