"""The verb `pack`: registers, lists, shows, enables and disables packs of flows."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..display import json_output
from ..display.output import (
    PROGRAM,
    Piece,
    Styled,
    next_step,
    note,
    result,
    table,
    text_width,
)
from ..display.table import render
from ..inputs.files import read_bytes
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_dispatcher.readings.pack_management import PackManager, PackReport
    from uncaged_engine.api import Engine

EXIT_COLLISIONS = 1


@click.group("pack")
def command() -> None:
    """Manage packs: flows that belong together, with the sentences that run them. A pack is a YAML
    file with its name, description, flows, entity types and rules; docs/packs.md has its keys.
    """


@command.command("add", short_help="Register a pack file.")
@click.argument("file", type=click.Path(path_type=Path))
@shared_option
@json_option
def add(file: Path, as_json: bool) -> None:
    """Register the pack in FILE, or replace the pack of that name. Its flows must be added by
    themselves.
    """
    from uncaged_dispatcher.packs.pack import MAX_PACK_BYTES

    data = read_bytes(file, max_bytes=MAX_PACK_BYTES)
    engine, manager = _opened()
    report = manager.add(data, str(file))
    engine.keep_sentences()
    if as_json:
        json_output.document(_document(report))
        return
    count = len(report.flows)
    flows = "1 flow" if count == 1 else f"{count} flows"
    result(f"the pack {report.pack.name} is registered, with {flows}")
    for flow in report.missing:
        note(Styled("warning: ", "yellow"), f"the flow {flow!r} is not in the registry yet")
    for other in manager.shared_flows(report.pack.name):
        note(Styled("warning: ", "yellow"), other)


@command.command("list", short_help="List the packs.")
@shared_option
@json_option
def list_packs(as_json: bool) -> None:
    """List the packs: their flows, and whether sentences reach them."""
    reports, problems = _opened()[1].reports()
    if as_json:
        json_output.document(
            {"packs": [_document(report) for report in reports], "problems": list(problems)}
        )
        return
    for problem in problems:
        note(Styled("warning: ", "yellow"), problem)
    rows: list[list[Piece]] = [
        [
            Styled(report.pack.name, "cyan"),
            "yes" if report.pack.enabled else "no",
            str(len(report.flows)),
            report.pack.origin,
            report.pack.description,
        ]
        for report in reports
    ]
    headers = ("pack", "enabled", "flows", "from", "description")
    table(render(headers, rows, width=text_width(sys.stdout)))


@command.command("show", short_help="Show a pack with its flows and sentences.")
@click.argument("name")
@click.option("--brief", is_flag=True, help="Show one sentence of each flow that sentences reach.")
@click.option("--refresh", is_flag=True, help="List the tools of its MCP server anew.")
@shared_option
@json_option
def show(*, name: str, brief: bool, refresh: bool, as_json: bool) -> None:
    """Show the pack NAME: description, flows with their sentences, entity types, and problems."""
    report = _opened()[1].report(name, anew=refresh)
    if as_json:
        json_output.document(_document(report))
        return
    pack = report.pack
    result(
        Styled(pack.name, "cyan"),
        f" ({'enabled' if pack.enabled else 'disabled'}, from {pack.origin})",
    )
    if pack.description:
        result(pack.description)
    if pack.is_of_site:
        result(f"read on pages of {', '.join((*pack.hosts, *pack.url_patterns))}")
    if brief:
        _show_offer(report)
        return
    for flow, patterns in report.patterns.items():
        mark = " (disabled)" if flow in report.disabled else ""
        result(f"  {flow}{mark}")
        for pattern in patterns:
            result(f"    {pattern}")
    for flow in report.missing:
        result(f"  {flow} (not in the registry)")
    if pack.entities:
        result(f"entity types: {', '.join(pack.entities)}")
    for problem in report.problems:
        note(Styled("problem: ", "yellow"), problem)


def _show_offer(report: PackReport) -> None:
    """Print one sentence of each flow that sentences reach; those of verbs for the product's own
    pack.
    """
    if report.pack.built_in:
        from uncaged_dispatcher.packs.verbs import VERBS

        for name, verb in VERBS.items():
            result(f"  {name}: {verb.example}")
    for flow, patterns in report.patterns.items():
        if patterns and flow not in report.disabled:
            result(f"  {flow}: {patterns[0]}")
    if not report.pack.enabled:
        next_step(f"{PROGRAM} pack enable {report.pack.name}")


@command.command("remove", short_help="Remove a registered pack file.")
@click.argument("name")
@shared_option
@json_option
def remove(name: str, as_json: bool) -> None:
    """Remove the pack file that was registered as NAME; its flows stay."""
    engine, manager = _opened()
    manager.remove(name)
    engine.keep_sentences()
    if as_json:
        json_output.document({"pack": name, "removed": True})
        return
    result(f"the pack {name} is removed; its flows stay")


@command.command("enable", short_help="Let sentences reach the flows of a pack.")
@click.argument("name")
@shared_option
@json_option
def enable(name: str, as_json: bool) -> None:
    """Let sentences reach the flows of the pack NAME again."""
    _set_enabled(name, enabled=True, as_json=as_json)


@command.command("disable", short_help="Hide the flows of a pack from sentences.")
@click.argument("name")
@shared_option
@json_option
def disable(name: str, as_json: bool) -> None:
    """Hide the flows of the pack NAME from sentences; `run` still starts them."""
    _set_enabled(name, enabled=False, as_json=as_json)


@command.command("scan", short_help="Find sentences that flows of two packs read.")
@click.option("--error", "as_error", is_flag=True, help="Exit with 1 if there is one.")
@click.option("--fuzzy", is_flag=True, help="Also list flows whose descriptions are alike.")
@shared_option
@json_option
def scan(*, as_error: bool, fuzzy: bool, as_json: bool) -> int:
    """Find flows of different packs that read a common sentence, each with such a sentence."""
    from uncaged_dispatcher.readings.collision_scan import similar_flows, static_collisions
    from uncaged_dispatcher.readings.interpreter import Interpreter

    engine = open_engine()
    engine.read_sentences()
    interpreter = Interpreter(engine)
    found = static_collisions(interpreter)
    similar = similar_flows(interpreter) if fuzzy else []
    interpreter.close()
    if as_json:
        json_output.document(
            {
                "collisions": [one.document() for one in found],
                "similar": [one.document() for one in similar],
            }
        )
    for one in () if as_json else found:
        result(" and ".join(one.flows), f" read {one.sentence!r}")
    for alike in () if as_json else similar:
        result(f"{alike.flows[0]} and {alike.flows[1]} are alike: {alike.percent:.0f} %")
    if not as_json and not found and not similar:
        result("no collisions")
    return EXIT_COLLISIONS if found and as_error else 0


def _set_enabled(name: str, *, enabled: bool, as_json: bool) -> None:
    engine, manager = _opened()
    manager.set_enabled(name, enabled)
    engine.keep_sentences()
    if as_json:
        json_output.document({"pack": name, "enabled": enabled})
        return
    result(f"the pack {name} is {'enabled' if enabled else 'disabled'}")


def _opened() -> tuple[Engine, PackManager]:
    """Return the engine, and the packs of its store."""
    from uncaged_dispatcher.readings.pack_management import PackManager

    engine = open_engine()
    engine.read_sentences()
    return engine, PackManager(engine)


def _document(report: PackReport) -> Mapping[str, object]:
    pack = report.pack
    return {
        "pack": pack.name,
        "description": pack.description,
        "enabled": pack.enabled,
        "priority": pack.priority,
        "origin": pack.origin,
        "hosts": list(pack.hosts),
        "urlPatterns": list(pack.url_patterns),
        "entities": list(pack.entities),
        "flows": list(report.flows),
        "missing": list(report.missing),
        "disabled": list(report.disabled),
        "patterns": {flow: list(patterns) for flow, patterns in report.patterns.items()},
        "problems": list(report.problems),
    }
