"""The verb `random`: prints an example sentence of a random enabled flow, or runs it."""

from __future__ import annotations

import random

import click
from uncaged_bundles.clean import clean_line
from uncaged_bundles.errors import NotFoundError

from ..catalog import nearest
from ..display import json_output
from ..display.output import note, result
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..request_run import submit_request
from ..runtime import open_engine


@click.command()
@click.option("--pack", metavar="PACK", help="Choose among the flows of this pack.")
@click.option("--run", "runs", is_flag=True, help="Run the sentence, as `do` does.")
@shared_option
@json_option
def command(*, pack: str | None, runs: bool, as_json: bool) -> int:
    """Print an example sentence of an enabled flow, chosen at random."""
    from uncaged_dispatcher.readings.overview import example_sentences

    engine = open_engine()
    engine.read_sentences()
    found = example_sentences(engine)
    if pack is not None:
        names = sorted({one.pack for one in found if one.pack})
        found = [one for one in found if one.pack == pack]
        if not found:
            raise NotFoundError(
                f"no enabled flow of a pack {pack[:80]!r} has an example{nearest(pack[:80], names)}; 'uncaged-workflow pack list' shows all"
            )
    if not found:
        raise NotFoundError("no enabled flow has an example sentence")
    chosen = random.choice(found)  # noqa: S311 - nothing depends on it
    sentence = random.choice(chosen.sentences)  # noqa: S311 - as above
    if runs:
        note(clean_line(sentence))
        outcome = submit_request(
            engine, None, detach=False, as_json=as_json, verbose=False, text=sentence
        )
        return outcome.exit_code
    if as_json:
        json_output.document({"sentence": sentence, "flow": chosen.flow, "pack": chosen.pack})
    else:
        result(clean_line(sentence))
    return 0
