"""The verb `add`: registers a flow, after the user granted what its policy newly asks for."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import UsageError

from ..display import json_output
from ..display.output import next_step, note, result
from ..inputs.consent import asker
from ..inputs.options import accept_option, json_option
from ..inputs.sources import FlowSource, bundle_source, in_file
from ..inputs.stores import shared_option
from ..policy_check import EXIT_REFUSED, policy_check_of, policy_document, show_policy_check
from ..replay_check import show_check
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_bundles.ids import BundleHash
    from uncaged_engine.api import Engine


@click.command()
@click.argument("name")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Do not add FILE; replay the past threads of NAME against it.",
)
@click.option(
    "--policy",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --check: a JSON file with a policy. List the past effects of NAME that it would have refused.",
)
@accept_option
@shared_option
@json_option
def command(
    *,
    name: str,
    file: Path | None,
    only_check: bool,
    policy: Path | None,
    accept: bool,
    as_json: bool,
) -> int:
    """Add FILE as the flow NAME. A bundle is added as it is; a definition, a recipe (.json) or a
    script (.sh, .bash, .py, .ps1) is built first.

    Permissions that the version before did not have are listed and must be granted.

    \b
    Examples:
      uncaged-workflow add deploy deploy.py
      uncaged-workflow add deploy deploy.py --check
      uncaged-workflow add deploy --policy strict.json --check
    """
    if policy is not None and not only_check:
        raise UsageError("--policy is for --check; the policy of a flow is in its own file")
    if file is None:
        if policy is None:
            raise UsageError("name the FILE of the flow")
        return check_policy(open_engine(), name, policy, as_json=as_json)
    flow = bundle_source(file, name)
    if flow.built:
        note(f"built {file}")
    for line in flow.notes:
        note("  ", line)
    engine = open_engine()
    with in_file(file):
        if only_check:
            found = None if policy is None else policy_check_of(engine, name, policy)
            return show_check(engine, name, flow.source, policy=found, as_json=as_json)
        register(engine, name, flow, accept=accept, as_json=as_json)
    return 0


def check_policy(engine: Engine, name: str, policy: Path, *, as_json: bool) -> int:
    """Print the past effects that a policy refuses; return the exit code."""
    check = policy_check_of(engine, name, policy)
    if as_json:
        json_output.document({"flow": name, "policy": policy_document(check)})
    else:
        show_policy_check(check, name)
    return EXIT_REFUSED if check.refused else 0


def register(
    engine: Engine,
    name: str,
    flow: FlowSource,
    *,
    accept: bool,
    as_json: bool,
    imported: bool = False,
) -> None:
    """Register the flow and print the result; a flow that declares itself disabled is disabled.

    Args:
        imported: from an export; it replaces no flow.
    """
    ask = asker(f"flow {name!r}", accept=accept, shared=engine.address)
    added = (
        engine.add(name, flow.source, accept=ask, origin="import", follows=None)
        if imported
        else engine.add(name, flow.source, accept=ask)
    )
    if not flow.active:
        engine.registry.set_enabled(added.name, enabled=False)
    if as_json:
        fields = {
            "flow": added.name,
            "hash": added.hash,
            "changed": added.changed,
            "built": flow.built,
            "enabled": flow.active,
        }
        json_output.document({**fields, "granted": list(added.widened), "notes": list(flow.notes)})
        return
    result(
        f"{added.name}@{added.hash}"
        if added.changed
        else f"{added.name} is already {added.hash}; nothing was changed"
    )
    if not flow.active:
        note(f"{added.name} is disabled, as declared in its file")
    next_step(
        f"uncaged-workflow run {added.name}{required_options(engine, added.hash)}"
        if flow.active
        else f"uncaged-workflow enable {added.name}"
    )


def required_options(engine: Engine, bundle_hash: BundleHash) -> str:
    """Return the options that a run requires: the prompt for roles, and each required parameter."""
    descriptor = engine.bundle(bundle_hash).descriptor
    required = descriptor.parameters.get("required", [])
    words = ["--prompt TEXT"] if descriptor.roles else []
    words += (
        [f"--param {shlex.quote(f'{name}=VALUE')}" for name in required]
        if isinstance(required, list)
        else []
    )
    return "".join(f" {word}" for word in words)
