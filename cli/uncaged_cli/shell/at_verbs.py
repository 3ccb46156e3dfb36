"""Lines that begin with ``@``: each verb of the command, those that only lines have, and the names
of packs. `do`, `shell` and scripts use the same table.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import UsageError
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.files import read_if_there

from ..catalog import SECTIONS, VERBS, is_installed, nearest
from ..display import json_output
from ..display.output import PROGRAM, Styled, note, result
from ..lazy import external_verbs, is_verb
from ..main import run
from ..runtime import now_ms, open_engine
from .current import in_conversation
from .line_host import LineHost

if TYPE_CHECKING:
    from uncaged_engine.api import Engine

MARK = "@"
"""Begins a line that is a verb."""
RAW_VERBS = frozenset(("explain", "reason"))
"""Verbs whose argument is the rest of the line as it is written."""
BARE: Mapping[str, str] = {"constructions": "list", "conversation": "list", "keys": "list"}
"""Subcommands of verbs that are written alone."""


NO_VERB = f"@ is followed by a verb, as in: {PROGRAM} do '@threads'"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineVerb:
    """A verb that only lines have, or that does more there. usage: its arguments."""

    perform: Callable[[LineHost, Sequence[str]], int]
    help: str
    usage: str = ""
    only_shell: bool = False


def run_verb(words: Sequence[str], host: LineHost) -> int:
    """Run a verb with its arguments, and return its exit code.

    Args:
        words: the verb without its mark, and its arguments.
    Raises:
        UsageError: there is no such verb; the message names the closest one.
    """
    name = words[0] if words else ""
    if not name:
        raise UsageError(NO_VERB)
    if name in ("do", "shell"):
        raise UsageError(f"@{name} is this command itself; write the sentence without it")
    found = LINE_VERBS.get(name)
    if found is not None and found.only_shell and not host.is_shell:
        raise UsageError(f"@{name} is a verb of the shell; start one with '{PROGRAM} shell'")
    if found is not None:
        return found.perform(host, words[1:])
    return _command(host, words)


def spelled_out(line: str) -> list[str]:
    """Return the words of the command that a line with a verb runs.

    Raises: as `run_verb`.
    """
    words = verb_words(line)
    if not words:
        raise UsageError(NO_VERB)
    if words[0] in LINE_VERBS and not is_verb(words[0]):
        return ["do", line]  # a verb that only lines have
    return command_words(words, _opened)


def verb_line(text: str) -> str | None:
    """Return a line that is a verb, with its mark; None if it is a sentence. A command line, as
    messages suggest it, is a verb.
    """
    if text.startswith(f"{PROGRAM} "):
        return MARK + text.removeprefix(f"{PROGRAM} ").lstrip()
    return text if text.startswith(MARK) else None


def verb_words(text: str) -> list[str]:
    """Split a line that begins with ``@``; the mark is left out.

    Raises:
        UsageError: a quotation in it is not closed.
    """
    line = text.strip().removeprefix(MARK)
    name, *rest = line.split(maxsplit=1)[:2] or [""]
    if name in RAW_VERBS:
        return [name, *rest]
    try:
        return shlex.split(line)
    except ValueError as exc:
        raise UsageError(f"{text[:200]!r}: {exc}; close the quotation") from exc


def reason_text(line: str) -> str | None:
    """Return the text that a line with a verb gives the flow `reason`; None for another line."""
    match line.strip().removeprefix(MARK).split(maxsplit=1):
        case ["reason", text]:
            return text
        case _:
            return None


def verb_names() -> dict[str, str]:
    """Return all verbs of a line with their help."""
    listed = {name: line for name, line in VERBS.items() if is_installed(name)}
    others = dict.fromkeys(external_verbs(), "a verb of another distribution")
    own = {name: verb.help for name, verb in LINE_VERBS.items()}
    return {**listed, **others, **{name: listed.get(name, line) for name, line in own.items()}}


def pack_names(engine: Engine) -> dict[str, str]:
    """Return the packs with their descriptions, as the last `Engine.read_sentences` found them."""
    from uncaged_dispatcher.readings.pack_management import PackManager

    return PackManager(engine).names()


def _opened() -> Engine:
    engine = open_engine()
    engine.read_sentences()
    return engine


def _command(host: LineHost, words: Sequence[str]) -> int:
    """Run a verb of the command line, or show what the pack of this name offers."""
    words = command_words(words, host.engine)
    if host.is_shell:
        words = in_conversation(words, host)
    return run(_with_json(words) if host.as_json else words)


def command_words(words: Sequence[str], engine: Callable[[], Engine]) -> list[str]:
    """Return the words of the command that a line's verb runs; the name of a pack shows what the
    pack offers.

    Args:
        engine: returns that of the store whose packs are meant.
    Raises:
        UsageError: there is no such verb.
    """
    name, *arguments = words
    if not is_verb(name):
        packs = pack_names(engine())
        if name not in packs:
            near = nearest(name[:80], [*verb_names(), *packs])
            raise UsageError(f"no verb {name[:80]!r}{near}\nsee: @help")
        if arguments:
            raise UsageError(
                f"{name!r} is a pack, not a verb; write the sentence without @{name}, or @{name} alone for what it offers"
            )
        return ["pack", "show", "--brief", "--", name]
    if not arguments and name in BARE:
        return [name, BARE[name]]
    return [*words]


def _with_json(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with --json; what follows -- is no option."""
    end = words.index("--") if "--" in words else len(words)
    return [*words[:end], "--json", *words[end:]]


def _clear(_host: LineHost, words: Sequence[str]) -> int:
    _refuse_arguments("clear", words)
    click.clear()
    return 0


def _exit(host: LineHost, words: Sequence[str]) -> int:
    _refuse_arguments("exit", words)
    host.is_ending = True
    return 0


def _config(host: LineHost, words: Sequence[str]) -> int:
    """Print the settings as they apply, with the defaults, and their file."""
    from uncaged_engine.settings.config_file import effective_settings

    words, as_json = _without_json(host, words)
    _refuse_arguments("config", words)
    path = host.engine().store.config_path
    data = read_if_there(path)
    settings = effective_settings(data or b"", path)
    if as_json:
        json_output.document({"file": str(path), "exists": data is not None, "settings": settings})
        return 0
    import yaml

    result(f"# {path}{' (no such file; these are the defaults)' if data is None else ''}")
    result(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True).rstrip())
    return 0


def _conversation(host: LineHost, words: Sequence[str]) -> int:
    """Run the verb `conversation`; the shell goes where `new`, `switch` and `delete` lead."""
    from uncaged_dispatcher.conversations import catalog

    line = ["conversation", *words]
    match words:
        case ["new" | "switch", *_] if host.is_shell:
            code = _command(host, line)
            if code == 0:
                host.enter(catalog.current_conversation(host.engine().store, now_ms()))
            return code
        case ["delete", *arguments] if host.is_shell and (name := _to_delete(arguments)):
            id = catalog.find_conversation(host.engine().store, name)
            is_own = id == host.conversation_id()
            with host.released(id):
                code = _command(host, line)
            if is_own and code == 0:
                host.enter(catalog.current_conversation(host.engine().store, now_ms()))
            return code
        case _:
            return _command(host, line)


def _to_delete(arguments: Sequence[str]) -> str | None:
    """Return the conversation that `conversation delete` names."""
    from ..verbs.conversation import delete

    found = delete.make_context("delete", [*arguments], resilient_parsing=True)
    return None if found.params["conversation"] is None else str(found.params["conversation"])


def _explain(host: LineHost, words: Sequence[str]) -> int:
    if not words:
        raise UsageError("@explain is followed by a sentence")
    return _command(host, ["explain", "--", " ".join(words)])


def _help(host: LineHost, words: Sequence[str]) -> int:
    words, as_json = _without_json(host, words)
    if not words:
        _print_overview(as_json=as_json)
        return 0
    name = words[0].removeprefix(MARK)
    known = verb_names()
    if name not in known:
        raise UsageError(f"no verb {name!r}{nearest(name, known)}")
    own = LINE_VERBS.get(name)
    if own is not None:
        result(Styled(f"@{' '.join([name, own.usage]).strip()}", "cyan"))
        result(f"  {own.help}")
    return run([name, *words[1:], "--help"]) if name in VERBS else 0


def _print_overview(*, as_json: bool) -> None:
    if as_json:
        json_output.document({"verbs": verb_names()})
        return
    own = {name: verb.help for name, verb in LINE_VERBS.items() if name not in VERBS}
    for title, verbs in {"Lines": own, **SECTIONS}.items():
        result(Styled(title, "cyan"))
        for name, line in verbs.items():
            if name in own or is_installed(name):
                result(f"  {f'@{name}':<15} {line}")
    note("Any other line is a sentence; `what can you do` lists examples.")


def _history(host: LineHost, words: Sequence[str]) -> int:
    """Show the records of the conversation, or the versions of a flow."""
    match words:
        case [] | ["after", _]:
            after = ["--after", words[1]] if words else []
            shown = ["conversation", "show", host.conversation_id(), *after]
            return _command(host, shown)
        case _:
            return _command(host, ["history", *words])


def _packs(host: LineHost, words: Sequence[str]) -> int:
    return _command(host, ["pack", "list", *words])


def _reason(host: LineHost, words: Sequence[str]) -> int:
    if not words:
        raise UsageError("@reason is followed by what is to be done")
    return host.run_reason(" ".join(words))


def _run(host: LineHost, words: Sequence[str]) -> int:
    """Run a script of lines, or a flow: names of flows have neither dots nor slashes."""
    if not words or not {".", "/"} & set(words[0]):
        return _command(host, ["run", *words])
    from .scripts import run_script

    options = dict.fromkeys(word for word in words[1:] if word != "--json")
    strange = next((word for word in options if word != "--keep-going"), None)
    if strange is not None:
        raise UsageError(f"@run FILE takes the option --keep-going only, not {strange!r}")
    return run_script(Path(words[0]).expanduser(), host, keep_going=bool(options))


def _without_json(host: LineHost, words: Sequence[str]) -> tuple[list[str], bool]:
    """Return the words without the option ``--json``, and whether JSON is to be printed."""
    return [word for word in words if word != "--json"], host.as_json or "--json" in words


def _refuse_arguments(name: str, words: Sequence[str]) -> None:
    if words:
        raise UsageError(f"@{name} takes no arguments, not {words[0]!r}")


LINE_VERBS: Mapping[str, LineVerb] = {
    "clear": LineVerb(perform=_clear, help="Clear the screen.", only_shell=True),
    "config": LineVerb(perform=_config, help="Show the settings that apply, and their file."),
    "conversation": LineVerb(
        perform=_conversation,
        usage="new | list | show | rename | switch | delete",
        help="Without a name, the conversation of the shell is meant; new and switch change it.",
    ),
    "exit": LineVerb(perform=_exit, help="Leave the shell, as Ctrl-D does.", only_shell=True),
    "explain": LineVerb(
        perform=_explain, usage="SENTENCE", help="The rest of the line is the sentence."
    ),
    "help": LineVerb(perform=_help, usage="[VERB]", help="List the verbs, or describe one."),
    "history": LineVerb(
        perform=_history,
        usage="[after N] | FLOW",
        help="Show the requests of the conversation, or the versions of a flow.",
    ),
    "packs": LineVerb(perform=_packs, help="List the packs; @NAME alone shows one of them."),
    "reason": LineVerb(
        perform=_reason,
        usage="TEXT",
        help="Let the flow reason work on the rest of the line, as a request.",
    ),
    "run": LineVerb(
        perform=_run,
        usage="FILE [--keep-going] | FLOW ...",
        help="Run a script, one request on each line; a word with . or / is a file.",
    ),
}
