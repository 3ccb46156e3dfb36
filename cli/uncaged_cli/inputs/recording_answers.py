"""Questions about a recording: its parameters, what the proof may send, and whether to save it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click
from uncaged_browser.recording.summary import summary_of
from uncaged_bundles.errors import RefusedError, UsageError

from ..display.output import is_terminal, note

if TYPE_CHECKING:
    from uncaged_browser.recording.recording import Recording
    from uncaged_browser.session.proving import FlowProof

DROPPED = "-"


def can_ask() -> bool:
    """Check for a person on a terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def chosen_parameters(recording: Recording, pairs: Iterable[str]) -> Mapping[str, str]:
    """Return the recorded values that become parameters, by name: those of *pairs*, else the
    proposed ones, which a person may rename or drop.
    """
    named = named_values(pairs)
    if named:
        return named
    proposed = recording.propose_parameters()
    if not proposed or not can_ask():
        return proposed
    note(f"Parameters: Enter keeps a name, another name renames it, {DROPPED} drops it.")
    chosen = {}
    for name, value in proposed.items():
        text = click.prompt(f"  {value!r} is", default=name, err=True).strip()
        if text != DROPPED:
            chosen[text] = value
    return chosen


def named_values(pairs: Iterable[str], option: str = "--param") -> dict[str, str]:
    """Return the values of an option ``NAME=VALUE`` by name."""
    named = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {pair!r} is not NAME=VALUE")
        named[name] = value
    return named


def send_asker(steps: Sequence[object], *, send: bool) -> Callable[[int, str], bool]:
    """Return a function that asks whether the proof may repeat what a step sends. Without a
    terminal the answer is *send*.
    """

    def may_send(number: int, reason: str) -> bool:
        if send or not can_ask():
            return send
        note(f"step {number} ({summary_of(steps[number - 1])}) would be repeated; {reason}")
        return click.confirm("Send it again?", default=False, err=True)

    return may_send


def may_save(proof: FlowProof, *, save: bool, keep: Callable[[], Path]) -> None:
    """Ask whether to save a flow whose proof failed.

    Args:
        keep: writes the recording to a file that stays.
    Raises:
        RefusedError: it is not saved.
    """
    failure = f"the proof run failed at step {proof.step}: {proof.reason}"
    if proof.refused:
        failure += f"; the pages also asked for {', '.join(proof.refused)} (--allow-host)"
    if save:
        note(failure)
        return
    if can_ask():
        note(failure)
        if click.confirm("Save the flow all the same?", default=False, err=True):
            return
    file = keep()
    raise RefusedError(
        f"{failure}; the flow was not saved. Change {file} if need be, then:"
        f" uncaged-workflow record NAME --import {quote(str(file))}, with --unproved to save it as it is"
    )
