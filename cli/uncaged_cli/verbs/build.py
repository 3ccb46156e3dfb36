"""The verb `build`: builds the bundle of a definition, a recipe or a script. The same input gives
the same bytes on every machine.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click
from uncaged_bundles.errors import UsageError

from ..display import json_output
from ..display.output import is_terminal, next_step, note, result
from ..inputs.options import json_option
from ..inputs.sources import bundle_source, in_file


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write the bundle to this file instead of standard output.",
)
@json_option
def command(file: Path, output: Path | None, as_json: bool) -> None:
    """Build FILE, a definition, a recipe or a script, into a bundle, and print the bundle.

    A file that is already a bundle is checked and printed unchanged.
    """
    from uncaged_bundles.storage.files import write_atomically
    from uncaged_bundles.validation.validate import read_bundle
    from uncaged_engine.effect_kinds import KNOWN

    found = bundle_source(file)
    source = found.source
    for line in found.notes:
        note(line)
    with in_file(file):
        bundle = read_bundle(source, KNOWN, check_schemas=True)
    if output is not None:
        if output.is_dir():
            raise UsageError(f"{str(output)!r} is a directory; --output must name a file")
        write_atomically(output, source)
    if as_json:
        where = {"output": str(output)} if output else {"source": source.decode()}
        json_output.document(
            {"hash": bundle.hash, "flow": bundle.descriptor.name, "bytes": len(source), **where}
        )
    elif output is not None:
        result(f"{output}: {bundle.descriptor.name}@{bundle.hash}")
        next_step(f"uncaged-workflow add {bundle.descriptor.name} {shlex.quote(str(output))}")
    elif is_terminal(sys.stdout):
        result(source.decode())
    else:
        sys.stdout.buffer.write(source)
        note(f"{bundle.descriptor.name}@{bundle.hash}")
