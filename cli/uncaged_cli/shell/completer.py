"""Completion of a line as it is typed: sentences by the rules of the store, verbs with their
arguments, and paths. It runs in a thread of its own; an error completes to nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from uncaged_bundles.errors import UncagedError
from uncaged_dispatcher.grammar.continuations import Direction
from uncaged_dispatcher.readings.completing import EnabledRules, complete_sentence
from uncaged_dispatcher.readings.interpreter import Interpreter
from uncaged_engine.api import Engine

from ..catalog import VERBS
from ..display.output import PROGRAM
from .at_verbs import LINE_VERBS, MARK, pack_names, verb_names

if TYPE_CHECKING:
    from uncaged_dispatcher.readings.completing import WordGroup

MAX_PATHS = 100
MAX_CHARACTERS = 2_000
PATH_TYPES = frozenset(("file", "dir"))
PATH_SIGNS = ("/", "~", ".")
"""Begin a word of a sentence that is a path."""


class LineCompleter(Completer):
    """Completions of the shell's line. Those of sentences are computed in one thread, to which the
    index of rules belongs.
    """

    def __init__(self, engine: Engine, root: Callable[[], click.Command]) -> None:
        """Args: root: returns the command whose verbs are completed."""
        self._engine = engine
        self._root = root
        self._thread = ThreadPoolExecutor(1, "completion")
        self._rules: EnabledRules | None = None

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002 - the signature is prompt_toolkit's
    ) -> Iterable[Completion]:
        """Yield the completions of the text before the cursor."""
        text = document.text_before_cursor
        if len(text) > MAX_CHARACTERS:
            return
        with suppress(UncagedError, OSError, RuntimeError):
            yield from filter(_is_visible, self._completions(text))

    def close(self) -> None:
        """End the thread and close the index."""

        def close() -> None:
            if self._rules is not None:
                self._rules.close()

        self._thread.submit(close)
        self._thread.shutdown(cancel_futures=False)

    def _completions(self, text: str) -> Iterator[Completion]:
        line = text.lstrip()
        if not line.startswith(MARK):
            yield from self._of_sentence(line)
            return
        name, space, rest = line.removeprefix(MARK).partition(" ")
        if not space:
            yield from self._of_verb_name(name)
        elif name == "explain":
            yield from self._of_sentence(rest.lstrip())
        else:
            yield from self._of_arguments(name, rest)

    def _of_sentence(self, line: str) -> Iterator[Completion]:
        found = self._thread.submit(self._groups, line).result()
        for group in found:
            yield from _of_group(line, group)
        word = line.rpartition(" ")[2]
        if word.startswith(PATH_SIGNS) or (word and word != line):
            yield from _of_path(word, "file")

    def _groups(self, line: str) -> tuple[WordGroup, ...]:
        if self._rules is None:
            self._rules = EnabledRules(Interpreter(self._engine))
        return complete_sentence(self._rules.read(), line, Direction.FORWARD).groups

    def _of_verb_name(self, name: str) -> Iterator[Completion]:
        for known, line in {**verb_names(), **pack_names(self._engine)}.items():
            if known.startswith(name):
                yield Completion(known, -len(name), display=f"{MARK}{known}", display_meta=line)

    def _of_arguments(self, name: str, rest: str) -> Iterator[Completion]:
        words = split_arg_string(rest)
        word = "" if not words or rest[-1:].isspace() else words.pop()
        for item in [*_of_line_verb(name, words, word), *self._of_command(name, words, word)]:
            if item.type in PATH_TYPES:
                yield from _of_path(word, item.type)
            else:
                yield Completion(item.value, -len(word), display_meta=item.help or "")

    def _of_command(self, name: str, words: list[str], word: str) -> list[CompletionItem]:
        """Return the completions of a verb of the command line, by click."""
        if name in LINE_VERBS and name not in VERBS:
            return []
        completing = ShellComplete(self._root(), {}, PROGRAM, "")
        return completing.get_completions([name, *words], word)


def _of_line_verb(name: str, words: list[str], word: str) -> list[CompletionItem]:
    """Return the completions of what only lines have."""
    match name:
        case "history" if not words and "after".startswith(word):
            return [CompletionItem("after")]
        case "help" if not words:
            return [CompletionItem(one) for one in verb_names() if one.startswith(word)]
        case "run" if not words and word.startswith(PATH_SIGNS):
            return [CompletionItem(word, type="file")]
        case "run" if words and {".", "/"} & set(words[0]):
            return [CompletionItem("--keep-going")]
        case _:
            return []


def _of_group(line: str, group: WordGroup) -> Iterator[Completion]:
    """Yield the words of a group, each with the space that its rule wants before it."""
    before, typed = line[: group.matched], line[group.matched :]
    needs_space = before and not before[-1].isspace() and group.separator_mode not in NO_SPACE
    for word in group.words:
        gap = typed[: len(typed) - len(typed.lstrip())] or (" " if needs_space else "")
        yield Completion(gap + word, -len(typed), display=word)


NO_SPACE = frozenset(("none", "optionalSpacePunctuation"))


def _of_path(word: str, kind: str) -> Iterator[Completion]:
    """Yield the entries of a directory whose names begin with the last part of *word*."""
    folder, name = os.path.split(word)
    place = Path(folder or ".").expanduser()
    found = []
    for entry in os.scandir(place):
        if entry.name.startswith(name) and (name or not entry.name.startswith(".")):
            is_folder = entry.is_dir()
            if is_folder or kind == "file":
                found.append(entry.name + "/" * is_folder)
    for entry_name in sorted(found)[:MAX_PATHS]:
        yield Completion(entry_name, -len(name))


def _is_visible(completion: Completion) -> bool:
    return completion.text.isprintable()
