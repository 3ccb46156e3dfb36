"""`add` puts a bundle into the registry, after a person has said yes to what its policy asks
anew.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..display import json_output
from ..display.output import next_step, note, result
from ..inputs.consent import asker
from ..inputs.options import accept_option, json_option
from ..inputs.sources import FlowSource, bundle_source, in_file
from ..replay_check import show_check
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_bundles.ids import BundleHash
    from uncaged_engine.api import Engine


@click.command()
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Add nothing; say what it would have done in the past threads of NAME.",
)
@accept_option
@json_option
def command(*, name: str, file: Path, only_check: bool, accept: bool, as_json: bool) -> int:
    """Register FILE as the flow NAME: a bundle as it is; a definition, a recipe (.json) or a script
    (.sh, .py, .ps1) built first.

    What the policy asks beyond the version before is shown in words and needs one yes.
    """
    found = bundle_source(file, name)
    if found.built:
        note(f"built {file}")
    for line in found.notes:
        note("  ", line)
    engine = open_engine()
    with in_file(file):
        if only_check:
            return show_check(engine, name, found.source, as_json=as_json)
        register(engine, name, found, accept=accept, as_json=as_json)
    return 0


def register(
    engine: Engine,
    name: str,
    found: FlowSource,
    *,
    accept: bool,
    as_json: bool,
    origin: str = "person",
) -> None:
    """Put what was found into the registry and say so; a flow that says of itself that it is
    disabled is disabled.
    """
    added = engine.add(
        name, found.source, accept=asker(f"flow {name!r}", accept=accept), origin=origin
    )
    if not found.active:
        engine.registry.set_enabled(added.name, enabled=False)
    if as_json:
        fields = {
            "flow": added.name,
            "hash": added.hash,
            "changed": added.changed,
            "built": found.built,
            "enabled": found.active,
        }
        json_output.document({**fields, "granted": list(added.widened), "notes": list(found.notes)})
        return
    result(
        f"{added.name}@{added.hash}"
        if added.changed
        else f"{added.name} is {added.hash} already; nothing was changed"
    )
    if not found.active:
        note(f"{added.name} is disabled, as its file says")
    next_step(
        f"uncaged-workflow run {added.name}{wanted(engine, added.hash)}"
        if found.active
        else f"uncaged-workflow enable {added.name}"
    )


def wanted(engine: Engine, bundle_hash: BundleHash) -> str:
    """Return the options that a run cannot do without: the task for those who play roles, and each
    required parameter.
    """
    descriptor = engine.bundle(bundle_hash).descriptor
    required = descriptor.parameters.get("required", [])
    words = ["--prompt TEXT"] if descriptor.roles else []
    words += (
        [f"--param {shlex.quote(f'{name}=VALUE')}" for name in required]
        if isinstance(required, list)
        else []
    )
    return "".join(f" {word}" for word in words)
