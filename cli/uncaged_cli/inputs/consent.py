"""Nothing is granted, and no program of the person's is used, without a yes of theirs to what they
saw in words.
"""

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


def asker(what: str, *, accept: bool) -> Callable[[tuple[str, ...]], bool]:
    """Return the function that shows what *what* asks anew and gets one yes.

    A terminal is asked; ``--accept`` says yes beforehand; anything else is refused with the
    option's name.
    """
    return lambda sentences: _shown(
        f"{what} asks to be allowed:",
        sentences,
        f"{what} is not granted",
        "Grant this?",
        accept=accept,
    )


def binding_asker(thread: str, *, accept: bool) -> Callable[[tuple[str, ...]], bool]:
    """Return the same for an imported thread: it shows what is believed of the archive, and what of
    this machine would be used.
    """
    head = f"thread {thread} comes from elsewhere. If it goes on here:"
    return lambda sentences: _shown(
        head, sentences, f"thread {thread} does not go on", "Go on like this?", accept=accept
    )


def _shown(
    head: str, sentences: Iterable[str], refusal: str, question: str, *, accept: bool
) -> bool:
    note(head)
    for sentence in sentences:
        note(f"  - {sentence}")
    if accept:
        return True
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise RefusedError(f"{refusal}: the above needs a yes, which --accept gives")
    if not click.confirm(question, default=False, err=True):
        raise RefusedError(f"{refusal}: the answer was no; nothing was changed")
    return True


def confirmed(what: str, *, yes: bool) -> None:
    """Get a yes to an action that was just shown. RefusedError: the answer was no, or there is no
    terminal and no ``--yes``.
    """
    if yes:
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise RefusedError(f"{what}: this needs a yes, which --yes gives; nothing was changed")
    if not click.confirm(f"{what[:1].upper()}{what[1:]}?", default=False, err=True):
        raise RefusedError(f"{what}: the answer was no; nothing was changed")


def ask_once(engine: Engine, flow: str, roles: Iterable[str], bindings: Mapping[str, str]) -> None:
    """Ask, on a terminal only, whether a coding program that is on PATH may answer for roles
    without a chosen agent.

    The answer is kept in the config: each program is asked about once.
    """
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return
    from uncaged_agents.choose import question

    row = question(engine.config, flow=flow, roles=roles, asked=bindings, environment=os.environ)
    if row is None:
        return
    from uncaged_agents.consent import keep

    note(
        f"{row.title} is on PATH and no agent is chosen. It would work as you, outside the sandbox, in the thread's own worktree."
    )
    yes = click.confirm(
        f"May {row.name} answer for the roles of flows? The answer is kept in config.yaml.",
        default=False,
        err=True,
    )
    keep(engine.store.config_path, row.name, yes=yes)
