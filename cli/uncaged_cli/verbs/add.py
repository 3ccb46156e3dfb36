"""`add` puts a bundle into the registry, after a person has said yes to what its policy asks anew."""

from __future__ import annotations

from pathlib import Path

import click

from .. import jsonout
from ..arguments import accept_option, json_option
from ..checking import show_check
from ..consent import asker
from ..screen import next_step, note, result
from ..session import open_engine
from ..sources import bundle_source


@click.command()
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--check", "only_check", is_flag=True, help="Add nothing; say what it would have done in the past threads of NAME.")
@accept_option
@json_option
def command(*, name: str, file: Path, only_check: bool, accept: bool, as_json: bool) -> int:
    """Register the bundle FILE as the flow NAME, or build the definition FILE and register the result.

    What the policy asks beyond the version before is shown in words and needs one yes.
    """
    source, built = bundle_source(file)
    if built:
        note(f"built {file}")
    if only_check:
        return show_check(open_engine(), name, source, as_json=as_json)
    added = open_engine().add(name, source, accept=asker(f"flow {name!r}", accept=accept))
    if as_json:
        jsonout.document({"name": added.name, "hash": added.hash, "changed": added.changed, "built": built, "granted": list(added.widened)})
        return 0
    result(f"{added.name}@{added.hash}" if added.changed else f"{added.name} is {added.hash} already; nothing was changed")
    next_step(f"uncaged-workflow run {added.name}")
    return 0
