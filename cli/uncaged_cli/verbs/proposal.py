"""The verb `proposal`: shows, accepts or rejects a proposed version of a flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from ..display import json_output
from ..display.durations import clock_time
from ..display.output import Styled, next_step, note, result
from ..inputs.completion import complete_proposals
from ..inputs.consent import asker
from ..inputs.options import accept_option, json_option
from ..inputs.stores import shared_option
from ..runtime import now_ms, open_engine

if TYPE_CHECKING:
    from uncaged_bundles.storage.proposals import Proposal
    from uncaged_engine.proposals import Proposals, ProposedVersion

MAX_LINES = 200
"""Lines of evidence that are printed; `--json` has all of it."""


@click.group("proposal")
def command() -> None:
    """Show, accept or reject a proposed version of a flow. ID is an id that `proposals` lists, or
    its start.
    """


@command.command("show", short_help="Show a proposal: permissions, evidence, difference.")
@click.argument("id", shell_complete=complete_proposals)
@shared_option
@json_option
def show_proposal(id: str, as_json: bool) -> None:
    """Show a proposal: the permissions that it adds first, then its evidence and the difference of
    the two versions.
    """
    from uncaged_engine.services.flows import compare

    from ..display.changes import coloured

    proposals = opened()
    proposal = proposals.find(id)
    version = proposals.versions(proposal)
    sections = compare(version.before, version.after)
    if as_json:
        json_output.document(
            {
                **proposal.document(),
                "widened": list(version.widened),
                "sections": {section.title: list(section.lines) for section in sections},
            }
        )
        return
    result(f"{proposal.flow}: {proposal.before} → {proposal.after}, {proposal.state}")
    result(f"proposed by {proposal.by}, {clock_time(proposal.created_ms)}")
    show_contradictions(version)
    if version.widened:
        result(Styled("It asks to be allowed more:", "yellow"))
        for sentence in version.widened:
            result(f"  - {sentence}")
    else:
        result("It asks for no further permission.")
    show_evidence(proposal)
    for section in sections:
        result(Styled(section.title, "bright_black"))
        for line in section.lines:
            result("  ", coloured(line))
    if proposal.state == "open":
        more = " --contradicted" if version.contradictions else ""
        next_step(f"uncaged-workflow proposal accept {proposal.id}{more}")


@command.command("accept", short_help="Make the proposed version the current one.")
@click.argument("id", shell_complete=complete_proposals)
@accept_option
@click.option("--contradicted", is_flag=True, help="Also if past threads speak against it.")
@shared_option
@json_option
def accept_proposal(id: str, accept: bool, contradicted: bool, as_json: bool) -> None:
    """Make the proposed version the current one of its flow; `rollback` returns to the one before.

    Permissions that the version before did not have are listed and must be granted. A version that
    past threads speak against is not proved, and needs --contradicted.
    """
    engine = open_engine()
    proposals = engine.proposals
    name = proposals.find(id).flow
    asked = asker(f"flow {name!r}", accept=accept, shared=engine.address)
    version = proposals.accept(id, accept=asked, now_ms=now_ms(), contradicted=contradicted)
    proposal = version.proposal
    if as_json:
        json_output.document(decided(proposal) | {"granted": list(version.widened)})
        return
    result(f"{proposal.flow}@{proposal.after} (was {proposal.before})")
    next_step(f"uncaged-workflow rollback {proposal.flow}")


@command.command("reject", short_help="Decide against a proposal.")
@click.argument("id", shell_complete=complete_proposals)
@shared_option
@json_option
def reject_proposal(id: str, as_json: bool) -> None:
    """Decide against a proposal. The flow stays as it is, and the same version is not proposed
    again.
    """
    proposal = opened().reject(id)
    if as_json:
        json_output.document(decided(proposal))
        return
    result(f"rejected; {proposal.flow} stays {proposal.before}")


def decided(proposal: Proposal) -> dict[str, object]:
    """Return a decision as JSON data."""
    document = proposal.document()
    return {key: document[key] for key in ("proposalId", "flow", "from", "to", "state")}


def show_contradictions(version: ProposedVersion) -> None:
    """Print first what speaks against a version."""
    if version.contradictions:
        result(Styled("It is not proved: past threads speak against it:", "yellow"))
        for sentence in version.contradictions:
            result(f"  - {sentence}")


def show_evidence(proposal: Proposal) -> None:
    """Print what the maker of a proposal found, and the threads that show it."""
    result(Styled("evidence", "bright_black"))
    lines = list(evidence_lines(proposal.evidence))
    for line in lines[:MAX_LINES]:
        result(f"  {line}")
    if len(lines) > MAX_LINES:
        note(f"  … {len(lines) - MAX_LINES} more lines; --json has all")
    for thread in proposal.threads:
        result(f"  thread {thread}")


def evidence_lines(value: object, indent: str = "", name: str = "") -> Iterator[str]:
    """Yield JSON data as indented lines, a value or the name of a part on each."""
    head = f"{indent}{name}: " if name else indent
    inner = f"{indent}  " if name else indent
    match value:
        case Mapping() if value:
            if name:
                yield f"{indent}{name}"
            for key, part in value.items():
                yield from evidence_lines(part, inner, str(key))
        case list() if any(isinstance(part, Mapping | list) for part in value):
            for number, part in enumerate(value, 1):
                yield from evidence_lines(part, indent, f"{name} {number}".strip())
        case list():
            yield f"{head}{', '.join(map(str, value))}"
        case _:
            yield f"{head}{value}"


def opened() -> Proposals:
    """Return the proposals of the store."""
    return open_engine().proposals
