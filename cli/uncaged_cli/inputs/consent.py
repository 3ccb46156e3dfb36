"""Confirmation prompts: policy grants, imported threads, merges, and coding programs on PATH."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import RefusedError

from ..display.output import is_terminal, note

if TYPE_CHECKING:
    from uncaged_engine.api import Engine


def asker(
    what: str, *, accept: bool, shared: str | None = None
) -> Callable[[tuple[str, ...]], bool]:
    """Return a function that prints the new rights of *what* and asks to grant them.

    shared: address of the shared store whose workers all get the rights.

    ``--accept`` grants without asking. Without a terminal the function raises RefusedError, which
    names the option.
    """
    where = "" if shared is None else f", on every worker of {shared}"
    return lambda sentences: _confirm_rights(
        f"{what} asks to be allowed{where}:",
        sentences,
        f"{what} is not granted",
        "Grant this?" if shared is None else "Grant this to all workers of the store?",
        accept=accept,
    )


def binding_asker(thread: str, *, accept: bool) -> Callable[[tuple[str, ...]], bool]:
    """Return the same for an imported thread: it prints which parts of the archive are trusted and
    what of this machine the thread would use.
    """
    head = f"thread {thread} was imported. If it continues on this machine:"
    return lambda sentences: _confirm_rights(
        head, sentences, f"thread {thread} does not continue", "Continue like this?", accept=accept
    )


def _confirm_rights(
    head: str, sentences: Iterable[str], refusal: str, question: str, *, accept: bool
) -> bool:
    note(head)
    for sentence in sentences:
        note(f"  - {sentence}")
    if accept:
        return True
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise RefusedError(
            f"{refusal}: there is no terminal to ask on; add --accept to accept the above"
        )
    if not click.confirm(question, default=False, err=True):
        raise RefusedError(f"{refusal}: the answer was no; nothing was changed")
    return True


def confirmed(what: str, *, yes: bool) -> None:
    """Ask to confirm an action that was just shown.

    Raises:
        RefusedError: the answer was no, or there is no terminal and no ``--yes``.
    """
    if yes:
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise RefusedError(
            f"{what}: there is no terminal to ask on; add --yes to confirm; nothing was changed"
        )
    if not click.confirm(f"{what[:1].upper()}{what[1:]}?", default=False, err=True):
        raise RefusedError(f"{what}: the answer was no; nothing was changed")


def is_attended(*, detach: bool, as_json: bool) -> bool:
    """Return whether a person follows the thread on a terminal and can be asked."""
    return not (detach or as_json) and is_terminal(sys.stdin) and is_terminal(sys.stderr)


def ask_once(engine: Engine, flow: str, roles: Iterable[str], bindings: Mapping[str, str]) -> None:
    """Ask, on a terminal only, whether a coding program on PATH may answer for roles without an
    agent.

    The answer is kept in config.yaml, so each program is asked about once.
    """
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return
    from uncaged_agents.choose import program_needing_consent

    row = program_needing_consent(
        engine.config, flow=flow, roles=roles, asked=bindings, environment=os.environ
    )
    if row is None:
        return
    from uncaged_agents.consent import record_consent

    note(
        f"{row.title} is on PATH and no agent is chosen. It would run with your rights, outside the sandbox, in the thread's worktree."
    )
    yes = click.confirm(
        f"May {row.name} answer for the roles of flows? Your answer is kept in config.yaml.",
        default=False,
        err=True,
    )
    record_consent(engine.store.config_path, row.name, yes=yes)
