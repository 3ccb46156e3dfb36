"""The verb `patterns`: suggests sentence patterns for a flow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import UsageError

from ..display import json_output
from ..display.output import PROGRAM, Styled, next_step, note, result
from ..inputs.options import flow_argument, json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_dispatcher.readings.pattern_sources import PatternProposal, TranslatedSentence
    from uncaged_dispatcher.readings.pattern_suggestions import CheckedPattern
    from uncaged_engine.api import Engine


@click.group("patterns", subcommand_metavar="suggest FLOW", no_args_is_help=True)
def command() -> None:
    """Suggest sentence patterns for flows."""


@command.command("suggest", short_help="Suggest patterns for a flow.")
@flow_argument
@click.option("--write", is_flag=True, help="Add the patterns to the flow, as a new version.")
@shared_option
@json_option
def suggest(*, flow: str, write: bool, as_json: bool) -> None:
    """Suggest patterns for FLOW: from its examples, from sentences that a model translated to it,
    from what was learned of these, and from its description, name and parameters.

    Each pattern was compiled, reads its own sentence as the right call, and takes no sentence from
    another flow; what fails is listed with the reason. No model is asked.
    """
    engine = open_engine()
    engine.read_sentences()
    engine.registry.resolve(flow)
    if engine.registry.flow(flow) is None:
        raise UsageError(f"{flow} is a bundle; patterns are suggested for a flow, by its name")
    checked = suggestions(engine, flow)
    usable = [one.proposal for one in checked if one.refused is None]
    added = None
    if write and usable:
        from ..editing import add_patterns

        added = add_patterns(engine, flow, [one.pattern for one in usable])
        remove_promoted(engine, flow, usable)
        engine.keep_sentences()
    if as_json:
        json_output.document(
            {
                "flow": flow,
                "patterns": [one.document() for one in checked],
                "hash": None if added is None else added.hash,
            }
        )
        return
    for one in checked:
        print_suggestion(one)
    if added is not None:
        result(f"{flow}@{added.hash} has {len(usable)} more patterns")
        next_step(f"{PROGRAM} rollback {flow}")
    elif usable:
        next_step(f"{PROGRAM} patterns suggest {flow} --write")
    else:
        note("no pattern to suggest")


def suggestions(engine: Engine, flow: str) -> list[CheckedPattern]:
    """Return the checked proposals for a flow, those from sentences first."""
    from uncaged_dispatcher.readings.interpreter import Interpreter
    from uncaged_dispatcher.readings.pattern_sources import from_sentences, from_words
    from uncaged_dispatcher.readings.pattern_suggestions import checked_patterns

    descriptor = engine.bundle(flow).descriptor
    parameters = descriptor.parameters
    proposals: list[PatternProposal] = [
        *from_sentences(list(known_sentences(engine, flow)), parameters),
        *learned_patterns(engine, flow),
        *from_words(flow, descriptor.description, parameters),
    ]
    with closing(Interpreter(engine)) as interpreter:
        return checked_patterns(interpreter, flow, parameters, proposals)


def known_sentences(engine: Engine, flow: str) -> Iterator[TranslatedSentence]:
    """Yield the flow's examples, and the sentences that a model translated to it."""
    from uncaged_dispatcher.calls import Call
    from uncaged_dispatcher.conversations.translations import translated_sentences
    from uncaged_dispatcher.readings.pattern_sources import TranslatedSentence

    examples = engine.bundle(flow).descriptor.raw.get("examples")
    for example in examples if isinstance(examples, list) else ():
        match example:
            case {"sentence": str(sentence), "params": dict(params)}:
                call = Call(flow=flow, params=params)
                yield TranslatedSentence(sentence=sentence, call=call, origin="example")
            case _:
                pass
    yield from translated_sentences(engine.store, flow)


def learned_patterns(engine: Engine, flow: str) -> Iterator[PatternProposal]:
    """Yield the patterns of the flow's active constructions."""
    from uncaged_dispatcher.constructions.kept import Constructions
    from uncaged_dispatcher.readings.pattern_sources import PatternProposal

    for found in Constructions(engine.store).all():
        one = found.construction
        if one.flow == flow and found.active:
            yield PatternProposal(
                pattern=one.pattern, sentence=one.sentence, params=None, origin="construction"
            )


def remove_promoted(engine: Engine, flow: str, written: list[PatternProposal]) -> None:
    """Delete the constructions whose patterns the flow has now."""
    from uncaged_dispatcher.constructions.kept import Constructions

    patterns = {one.pattern for one in written}
    constructions = Constructions(engine.store)
    for found in list(constructions.all()):
        if found.construction.flow == flow and found.construction.pattern in patterns:
            constructions.remove(found.construction.id)


def print_suggestion(checked: CheckedPattern) -> None:
    """Print a pattern with its source, or with the reason why it cannot be used."""
    proposal = checked.proposal
    source = f"  from the {proposal.origin}: {proposal.sentence}"
    if checked.refused is None:
        result(Styled(proposal.pattern, "cyan"))
        result(source)
    else:
        note(Styled("refused: ", "yellow"), proposal.pattern)
        note(source)
        note(f"  {checked.refused}")
