"""Engine and clock of a verb. The engine is imported only when a verb opens it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import RefusedError

if TYPE_CHECKING:
    from uncaged_bundles.storage.store import Store
    from uncaged_engine.api import Engine
    from uncaged_engine.shared_engine import SharedEngine

    from .inputs.stores import ChosenStore


def open_engine(*, of_machine: bool = False) -> Engine:
    """Open the store and print a warning for each shipped flow that could not be added.

    Args:
        of_machine: open this machine's directory, for a verb about what only a machine has.
    Raises:
        RefusedError: a shared store was named, and the verb works on a directory.
    """
    from uncaged_bundles.storage.store import Store

    from .inputs.stores import chosen_store

    context, home = click.get_current_context(silent=True), Store.open()
    chosen = None if of_machine else chosen_store(context, home)
    if chosen is not None:
        return _open_shared(context, home, chosen)
    from uncaged_engine.api import Engine

    engine = Engine.open(home.root)
    if engine.problems:
        from .display.output import Styled, note

        for problem in engine.problems:
            note(Styled("warning: ", "yellow"), problem)
    return engine


def open_shared() -> SharedEngine:
    """Open the shared store that the verb works on.

    Raises:
        UsageError: none is named.
    """
    from uncaged_bundles.storage.store import Store

    from .inputs.stores import needed_store

    home = Store.open()
    return _open_shared(click.get_current_context(), home, needed_store(home))


def _open_shared(context: click.Context | None, home: Store, chosen: ChosenStore) -> SharedEngine:
    from .inputs.stores import is_for_shared, makes_store, note_shared, tell_made

    if context is None or not is_for_shared(context):
        verb = "this command" if context is None else f"`{context.command_path}`"
        raise RefusedError(
            f"{verb} works on a directory, and {chosen.source} names a shared store: run it without that, or on a copy:"
            " `uncaged-workflow store copy ADDRESS DIR`, then the command with UNCAGED_WORKFLOW_HOME=DIR;"
            " `uncaged-workflow store copy DIR ADDRESS` brings its flows to the shared store"
        )
    from uncaged_engine.shared_engine import shared_engine

    engine = context.find_root().with_resource(
        shared_engine(
            chosen.address,
            home,
            is_visible=chosen.is_visible,
            report=_say_it_waits,
            made=tell_made if makes_store(context) else None,
        )
    )
    note_shared(context)
    return engine


def _say_it_waits(reason: str) -> None:
    from .display.output import note
    from .inputs.stores import option_of_store

    if click.get_current_context(silent=True) is None:
        return  # a follower of `serve`, whose page shows it

    command = f"uncaged-workflow work{option_of_store()}"
    note(f"the thread {reason or 'has not begun yet'}; `{command}` makes this machine a worker")


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def own_command() -> list[str]:
    """Return the words that run this command line, for a program that starts it later."""
    import shutil
    import sys
    from pathlib import Path

    from .display.output import PROGRAM

    beside = Path(sys.executable).with_name(PROGRAM)
    found = str(beside) if beside.exists() else shutil.which(PROGRAM)
    return [found] if found is not None else [sys.executable, "-m", "uncaged_cli"]
