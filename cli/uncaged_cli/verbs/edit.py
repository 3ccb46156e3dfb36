"""The verb `edit`: makes a new version of a flow that was built from a recipe or a script. Name,
patterns and history are kept.
"""

from __future__ import annotations

from pathlib import Path

import click
from uncaged_bundles.errors import UsageError

from ..display import json_output
from ..display.output import next_step, note, result
from ..editing import FlowEdit, edited_bundle
from ..inputs.completion import complete_flows, complete_patterns, complete_programs
from ..inputs.consent import asker
from ..inputs.options import accept_option, flow_argument, json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine


@click.command()
@flow_argument
@click.option(
    "--script",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The new script; its suffix is its language.",
)
@click.option("--description", metavar="TEXT", help="The new description.")
@click.option(
    "--set-parameter",
    "parameters",
    multiple=True,
    metavar="NAME.FIELD=VALUE",
    help="Change or add a parameter: type, required, default, description, pattern, allowedValues, pathMustExist. May be repeated.",
)
@click.option(
    "--remove-parameter",
    "removed",
    multiple=True,
    metavar="NAME",
    help="Remove a parameter. May be repeated.",
)
@click.option(
    "--policy",
    "policy_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The new policy, as JSON or YAML.",
)
@click.option(
    "--allow-command",
    "commands",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_programs,
    help="Let a script start this program. May be repeated.",
)
@click.option(
    "--allow-read",
    "reads",
    multiple=True,
    metavar="PATH",
    help="Let a script read this path. May be repeated.",
)
@click.option(
    "--allow-write",
    "writes",
    multiple=True,
    metavar="PATH",
    help="Let a script write to this path. May be repeated.",
)
@click.option(
    "--allow-module",
    "modules",
    multiple=True,
    metavar="NAME",
    help="Let a Python script import this module. May be repeated.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="Let the flow connect to this host. May be repeated.",
)
@click.option(
    "--allow-flow",
    "flows",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_flows,
    help="Let a task start this flow. May be repeated.",
)
@click.option(
    "--pattern",
    "patterns",
    multiple=True,
    metavar="TEXT",
    help="Add a sentence pattern. May be repeated.",
)
@click.option(
    "--remove-pattern",
    "dropped",
    multiple=True,
    metavar="TEXT",
    shell_complete=complete_patterns,
    help="Remove a sentence pattern. May be repeated.",
)
@accept_option
@shared_option
@json_option
def command(*, flow: str, accept: bool, as_json: bool, **changes: object) -> None:
    """Make a new version of FLOW, which was built from a recipe or a script. New permissions must
    be granted.
    """
    from uncaged_engine.effect_kinds import KNOWN

    edit = FlowEdit(**changes)  # type: ignore[arg-type]  # click gives each option the type that FlowEdit declares
    if edit.is_empty:
        raise UsageError(
            "nothing to change: add an option such as --script FILE or --allow-command NAME; see: uncaged-workflow edit --help"
        )
    engine = open_engine()
    entry = engine.registry.entry(flow)
    built = edited_bundle(engine.store.load_bundle(entry.hash, KNOWN), entry.name, edit)
    for line in built.notes:
        note("  ", line)
    ask = asker(f"flow {flow!r}", accept=accept, shared=engine.address)
    added = engine.add(entry.name, built.source, accept=ask, follows=entry.hash)
    if as_json:
        fields = {
            "flow": added.name,
            "hash": added.hash,
            "before": entry.hash,
            "changed": added.changed,
        }
        json_output.document({**fields, "granted": list(added.widened), "notes": list(built.notes)})
        return
    result(
        f"{added.name}@{added.hash} (was {entry.hash})"
        if added.changed
        else f"{added.name} is already {added.hash}; nothing was changed"
    )
    next_step(
        f"uncaged-workflow diff {added.name}~1 {added.name}"
        if added.changed
        else f"uncaged-workflow run {added.name}"
    )
