"""The verb `constructions`: lists, shows, promotes and deletes sentences learned from a model's
translations.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ..display import json_output
from ..display.output import next_step, note, result, table, text_width
from ..display.table import render
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_dispatcher.constructions.construction import Construction
    from uncaged_dispatcher.constructions.kept import Constructions
    from uncaged_engine.api import Engine


@click.group("constructions")
def command() -> None:
    """Show and change what was learned from a model's translations: sentence templates that run a
    flow without a model.
    """


@command.command("list", short_help="List the learned constructions.")
@click.option("--flow", metavar="NAME", help="Only those of this flow.")
@shared_option
@json_option
def list_constructions(flow: str | None, as_json: bool) -> None:
    """List the learned constructions; a silent one belongs to a flow whose parameters have changed,
    or that is disabled or removed.
    """
    _, constructions = opened()
    found = [one for one in constructions.all() if flow in (None, one.construction.flow)]
    for problem in constructions.problems():
        note(problem)
    if as_json:
        json_output.document({"constructions": [one.document() for one in found]})
        return
    if not found:
        result("nothing was learned yet")
        return
    rows = [
        [
            one.construction.id,
            one.construction.flow,
            "active" if one.active else "silent",
            one.construction.pattern,
        ]
        for one in found
    ]
    table(render(("id", "flow", "state", "pattern"), rows, width=text_width(sys.stdout)))


@command.command("show", short_help="Show one construction.")
@click.argument("id")
@shared_option
@json_option
def show_construction(id: str, as_json: bool) -> None:
    """Show a construction: its pattern, the sentence and the thread that it was learned from."""
    found = opened()[1].find(id)
    if as_json:
        json_output.document(found.document())
        return
    one = found.construction
    result(one.pattern)
    result(f"runs {one.flow}{f' of the pack {found.pack}' if found.pack else ''}")
    result(f'learned from "{one.sentence}" in thread {one.thread}')
    if not found.active:
        result("silent: the flow's parameters have changed, or it is disabled or removed")


@command.command("promote", short_help="Move a construction into its flow's patterns.")
@click.argument("id")
@shared_option
@json_option
def promote_construction(id: str, as_json: bool) -> None:
    """Add the pattern of a construction to its flow, as a new version, and delete the
    construction.
    """
    from uncaged_bundles.errors import RefusedError

    from ..editing import add_patterns

    engine, constructions = opened()
    found = constructions.find(id)
    one = found.construction
    if not found.active:
        raise RefusedError(
            f"the construction {one.id} is silent: the parameters of {one.flow} are not those that it was learned with"
        )
    added = add_patterns(engine, one.flow, [one.pattern])
    # after the version: until it is deleted, the construction reads the same sentences
    constructions.remove(one.id)
    engine.keep_sentences()
    if as_json:
        json_output.document({"flow": one.flow, "hash": added.hash, "pattern": one.pattern})
        return
    result(f"{one.flow}@{added.hash} has the pattern: {one.pattern}")
    next_step(f"uncaged-workflow rollback {one.flow}")


@command.command("delete", short_help="Delete one construction.")
@click.argument("id")
@shared_option
@json_option
def delete_construction(id: str, as_json: bool) -> None:
    """Delete a construction. The model is asked again for its sentences."""
    engine, constructions = opened()
    deleted = constructions.remove(id)
    engine.keep_sentences()
    report_deleted([deleted], as_json=as_json)


@command.command("prune", short_help="Delete the silent constructions.")
@shared_option
@json_option
def prune_constructions(as_json: bool) -> None:
    """Delete the constructions of flows that were removed or disabled, or whose parameters have
    changed.
    """
    engine, constructions = opened()
    deleted = constructions.prune()
    engine.keep_sentences()
    report_deleted(deleted, as_json=as_json)


def report_deleted(deleted: Iterable[Construction], *, as_json: bool) -> None:
    """Print the constructions that were deleted."""
    deleted = list(deleted)
    if as_json:
        json_output.document({"deleted": [one.document() for one in deleted]})
        return
    for one in deleted:
        result(f"deleted {one.id}: {one.pattern}")
    if not deleted:
        result("nothing to delete")


def opened() -> tuple[Engine, Constructions]:
    """Return the engine, and the constructions of its store."""
    from uncaged_dispatcher.constructions.kept import Constructions

    engine = open_engine()
    engine.read_sentences()
    return engine, Constructions(engine.store)
