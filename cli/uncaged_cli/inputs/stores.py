"""Addresses of stores: the option, its completion, and which store a verb uses."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from shlex import quote
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem
from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import dataclass

from ..display.output import PROGRAM
from ..entry import STORE_VARIABLE

if TYPE_CHECKING:
    from uncaged_bundles.storage.store import Store

SCHEMES = ("postgresql://",)
SHARED_VERBS = frozenset(
    (
        *("action", "add", "answer", "archive", "capture", "compare", "constructions"),
        *("conversation", "diff", "disable", "do", "due", "edit", "enable", "explain", "export"),
        *("feedback", "fix", "fork", "graph", "history", "import", "kill", "list", "log", "mcp"),
        *("memory", "notify", "pack", "patterns", "pause", "proposal", "proposals", "prune"),
        *("ps", "queue", "queues", "random", "record", "regress", "remove", "resume"),
        *("rollback", "run", "schedule", "schedules", "serve", "shell", "show", "test"),
        *("thread", "threads", "tools", "verify", "work"),
    )
)
"""Verbs with the option ``--store``."""
MAKING_VERBS = frozenset(("action", "add", "do", "run", "shell", "work"))
"""Verbs that make a shared store where there is none. Those that only look at one, and those that
change what is there, make none, so that a misspelt address stays an error.
"""
OF_ANY_STORE = frozenset(("store",))
_ADDRESS = f"{__name__}.address"
_INHERITED: ContextVar[str | None] = ContextVar("inherited", default=None)
_IS_SHARED = f"{__name__}.is_shared"
_COMMAND = re.compile(rf"([`'])({PROGRAM} [^`'\n]+)\1")
_SETTING = re.compile(rb"(?:^|[\n{,])[ \t]*[\"']?store[\"']?[ \t]*:")


def complete_addresses(
    context: click.Context, parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Complete a directory or a scheme."""
    schemes = complete_shared(context, parameter, incomplete)
    return [CompletionItem(incomplete, type="dir"), *schemes]


def complete_shared(
    _context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Complete the scheme of a shared store."""
    return [CompletionItem(scheme) for scheme in SCHEMES if scheme.startswith(incomplete)]


def _keep_address(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    context.meta.setdefault(_ADDRESS, None)
    if value is not None:  # also of a verb around this one
        context.meta[_ADDRESS] = value


shared_option = click.option(
    "--store",
    metavar="ADDRESS",
    expose_value=False,
    is_eager=True,
    callback=_keep_address,
    shell_complete=complete_shared,
    help=f"A shared store, postgresql://HOST/DATABASE?schema=NAME, instead of ${STORE_VARIABLE} or `store` in config.yaml.",
)
"""The option of a verb that works on a shared store, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenStore:
    """The shared store that a verb uses. is_visible: by an argument, which other users of the
    machine can read. source: the option, variable or file that names it.
    """

    address: str
    is_visible: bool
    source: str


def chosen_store(context: click.Context | None, home: Store) -> ChosenStore | None:
    """Return the shared store that the option, the variable or config.yaml names, in this order."""
    named = _named(context)
    if named is not None:
        return ChosenStore(address=named, is_visible=True, source="--store")
    variable = os.environ.get(STORE_VARIABLE)
    if variable:
        return ChosenStore(address=variable, is_visible=False, source=STORE_VARIABLE)
    if not _may_name_store(home):
        return None
    from uncaged_engine.settings.loading import load

    config = load(home)
    if config.store is None:
        return None
    return ChosenStore(address=config.store, is_visible=False, source=str(config.path))


def needed_store(home: Store) -> ChosenStore:
    """Return the shared store that the verb works on.

    Raises:
        UsageError: none.
    """
    chosen = chosen_store(click.get_current_context(), home)
    if chosen is None:
        raise UsageError(
            f"no shared store is named; add --store postgresql://HOST/DATABASE, set {STORE_VARIABLE},"
            f" or write `store:` into {home.config_path}"
        )
    return chosen


def names_shared(context: click.Context) -> bool:
    """Tell whether a shared store is named, for completion: without an error."""
    from uncaged_bundles.errors import UncagedError
    from uncaged_bundles.storage.store import Store

    try:
        return chosen_store(context, Store.open()) is not None
    except (UncagedError, OSError):
        return False


def is_for_shared(context: click.Context | None) -> bool:
    """Tell whether the verb works on a shared store."""
    return context is not None and _ADDRESS in context.meta


def makes_store(context: click.Context) -> bool:
    """Tell whether the verb makes a shared store where there is none; no verb below another one
    does.
    """
    root, parent = context.find_root(), context.parent
    return context.info_name in MAKING_VERBS and parent in (None, root)


def tell_made(address: str) -> None:
    """Note that a store was made."""
    from ..display.output import note

    note(f"made a store in {address}")


def note_shared(context: click.Context) -> None:
    """Note that the verb opened a shared store."""
    context.meta[_IS_SHARED] = True


def on_same_store(command: str) -> str | None:
    """Return a suggested command for the store that the verb works on; None if it does not work
    there.
    """
    context = click.get_current_context(silent=True)
    program, _, words = command.partition(" ")
    if context is None or not context.meta.get(_IS_SHARED) or program != PROGRAM:
        return command
    verb = words.partition(" ")[0]
    if verb not in SHARED_VERBS:
        return command if verb in OF_ANY_STORE else None
    return f"{command}{option_of_store()}"


def in_same_store(message: str, context: click.Context) -> str:
    """Return a message of a verb whose quoted commands are for the store that it worked on."""

    def chosen(found: re.Match[str]) -> str:
        with context:
            command = on_same_store(found[2])
        if command is None or command == found[2]:
            return found[0]
        return f"`{command}`"

    return _COMMAND.sub(chosen, message)


def option_of_store() -> str:
    """Return the option that names the verb's store, with a space before it; empty if a variable or
    config.yaml does.
    """
    return "".join(f" {quote(word)}" for word in words_of_store())


def words_of_store() -> list[str]:
    """Return the words of the option that names the verb's store; none if a variable or config.yaml
    does.
    """
    named = _named(click.get_current_context(silent=True))
    return [] if named is None else ["--store", named]


@contextmanager
def inherited() -> Iterator[None]:
    """Use the store that the present verb's option names for the verbs that it runs."""
    token = _INHERITED.set(_named(click.get_current_context(silent=True)))
    try:
        yield
    finally:
        _INHERITED.reset(token)


def on_present_store(action: Callable[[], None]) -> Callable[[], None]:
    """Return the action for another thread of execution, where it names the present verb's store in
    its messages.
    """
    verb = click.get_current_context(silent=True)
    if verb is None:
        return action

    def perform() -> None:
        with click.Context(verb.command, parent=verb, info_name=verb.info_name):
            action()

    return perform


def _named(context: click.Context | None) -> str | None:
    """Return the address that the option names, of the verb or of the one that runs it."""
    named: str | None = None if context is None else context.meta.get(_ADDRESS)
    return _INHERITED.get() if named is None else named


def _may_name_store(home: Store) -> bool:
    """Look for the setting without the time that a YAML reader takes to load."""
    try:
        data = home.config_path.read_bytes()
    except OSError:
        return False  # who reads the settings says so
    return _SETTING.search(data) is not None
