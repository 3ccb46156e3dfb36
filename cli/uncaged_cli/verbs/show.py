"""The verb `show`: prints what a flow is and what it may do."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click
from uncaged_bundles.clean import clean_line
from uncaged_engine.services.flows import as_text, edges_of_table, find_version

from ..display import json_output
from ..display.durations import clock_time
from ..display.output import Styled, result, width_of
from ..inputs.options import flow_argument, json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_bundles.contract import Descriptor
    from uncaged_bundles.ids import BundleHash
    from uncaged_bundles.storage.snapshot import Flow

PURE = "nothing: it only computes and has no effects"
FOREIGN = (
    "External agent programs are restricted by the permissions that they request, by their own options, or only by their prompt; the first"
    " line of a run says which."
)


@click.command()
@flow_argument
@shared_option
@json_option
def command(flow: str, as_json: bool) -> None:
    """Show FLOW (a name or a hash): description, version, permissions, roles, parameters."""
    from uncaged_bundles.policy import widening
    from uncaged_engine.effect_kinds import KNOWN

    engine = open_engine()
    entry, bundle_hash = find_version(engine.registry, flow)
    descriptor = engine.bundle(bundle_hash).descriptor
    name = entry.name if entry else None
    allowed = widening(None, descriptor.policy, KNOWN) or (PURE,)
    if as_json:
        json_output.document(
            {
                "flow": name,
                "hash": bundle_hash,
                "enabled": entry.enabled if entry else None,
                "sinceMs": entry.timestamp_ms if entry else None,
                "formerVersions": len(entry.history) if entry else 0,
                "mayDo": list(allowed),
                "descriptor": descriptor.raw,
            }
        )
        return
    show_flow(entry, bundle_hash, descriptor, allowed)


def show_flow(
    entry: Flow | None, bundle_hash: BundleHash, descriptor: Descriptor, allowed: Sequence[str]
) -> None:
    """Print a flow for people."""
    from uncaged_bundles.rights import Rights

    name = entry.name if entry else None
    result(
        Styled(f"{name or descriptor.name}@{bundle_hash}", "cyan"),
        "" if entry is None or entry.enabled else " (disabled)",
    )
    paragraph(descriptor.description)
    if entry:
        former = len(entry.history)
        result(
            f"since {clock_time(entry.timestamp_ms)}, {former} former version{'' if former == 1 else 's'}, kind {descriptor.kind}"
        )
    if language := descriptor.raw.get("unsupported"):
        paragraph(
            f"unsupported: {language}. It cannot run; 'uncaged-workflow edit {name or 'NAME'} --script FILE.py' gives it a script."
        )
    heading("It may")
    for sentence in allowed:
        paragraph(sentence, bullet="- ")
    if descriptor.roles and Rights.of(descriptor.policy.limits.get("role", {})).is_narrowed:
        paragraph(FOREIGN)
    if descriptor.roles:
        heading("Roles")
        for role in descriptor.roles.values():
            paragraph(f"{role.name}: {role.description}", bullet="- ")
    heading("Parameters")
    for line in parameter_lines(descriptor.parameters) or ["none besides the prompt"]:
        paragraph(line, bullet="- ")
    show_sentences(descriptor.raw)
    if descriptor.graph:
        heading("Graph")
        for line in as_text(edges_of_table(descriptor.graph)):
            result("  ", line)


def show_sentences(raw: Mapping[str, object]) -> None:
    """Print the sentence patterns of a flow, and its examples."""
    patterns, aliases, examples = (
        raw.get(key) or [] for key in ("patterns", "aliases", "examples")
    )
    if isinstance(patterns, list) and patterns:
        heading("Patterns")
        for pattern in patterns:
            paragraph(
                f"{pattern}{' (alias)' if isinstance(aliases, list) and pattern in aliases else ''}",
                bullet="- ",
            )
    if isinstance(examples, list) and examples:
        heading("Examples")
        for example in examples:
            sentence = example.get("sentence") if isinstance(example, Mapping) else example
            params = example.get("params") if isinstance(example, Mapping) else None
            paragraph(
                str(sentence) + (f" {json.dumps(params, ensure_ascii=False)}" if params else ""),
                bullet="- ",
            )


def parameter_lines(schema: Mapping[str, object]) -> list[str]:
    """Return one line per parameter: name, type, rules, default, description."""
    properties = schema.get("properties")
    required = schema.get("required")
    wanted = set(required) if isinstance(required, list) else set()
    return (
        [_parameter_line(name, part, required=name in wanted) for name, part in properties.items()]
        if isinstance(properties, Mapping)
        else []
    )


def _parameter_line(name: str, part: object, *, required: bool) -> str:
    part = part if isinstance(part, Mapping) else {}
    kind = part.get("type", "any")
    kinds = " or ".join(map(str, kind)) if isinstance(kind, list) else str(kind)
    words = ["path" if part.get("format") == "path" else kinds]
    if "pattern" in part:
        words.append(f"matching {part['pattern']}")
    if part.get("pathMustExist"):
        words.append("must exist")
    if "enum" in part:
        words.append(f"one of {json.dumps(part['enum'], ensure_ascii=False)}")
    if required:
        words.append("required")
    if "default" in part:
        words.append(f"default {json.dumps(part['default'], ensure_ascii=False)}")
    text = f": {part['description']}" if part.get("description") else ""
    return f"{name} ({', '.join(words)}){text}"


def heading(text: str) -> None:
    result(Styled(text, "bright_black"))


def paragraph(text: str, *, bullet: str = "") -> None:
    """Print *text* wrapped to the terminal."""
    width = width_of(sys.stdout)
    indent = "  " + " " * len(bullet) if bullet else ""
    first = f"  {bullet}" if bullet else ""
    lines = (
        textwrap.wrap(clean_line(text), width, initial_indent=first, subsequent_indent=indent)
        if width
        else [first + clean_line(text)]
    )
    for line in lines:
        result(line)
