"""Requests that are run one after the other, each to its end: of `do`, a pipe, or a script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from uncaged_bundles.records import dataclass

from ..request_run import submit_request
from ..runtime import now_ms, open_engine
from .at_verbs import run_verb, verb_line, verb_words

if TYPE_CHECKING:
    from uncaged_engine.api import Engine
    from uncaged_engine.worker.client import Launching


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """Options of requests from one command line. agreed: nothing is asked before a flow runs."""

    agreed: bool = False
    model: bool = True
    grammar: bool = True
    attachments: tuple[str, ...] = ()
    detach: bool = False
    as_json: bool = False
    verbose: bool = False

    def fields(self) -> dict[str, object]:
        """Return the fields of each request."""
        return {
            "agreed": self.agreed,
            "model": self.model,
            "grammar": self.grammar,
            "attachments": self.attachments,
        }


class LineMode:
    """Runs lines in one conversation."""

    def __init__(
        self, options: RequestOptions, *, conversation: str | None = None, is_shell: bool = False
    ) -> None:
        """Args: conversation: a name; the current one is used without it."""
        self.as_json = options.as_json
        self.is_shell = is_shell
        self.is_ending = False
        self.scripts: list[Path] = []
        self._options = options
        self._name = conversation
        self._id: str | None = None
        self._engine: Engine | None = None

    def engine(self) -> Engine:
        """Return the engine; the first use opens the store."""
        if self._engine is None:
            self._engine = open_engine()
            self._engine.read_sentences()
        return self._engine

    def conversation_id(self) -> str:
        """Return the conversation's id; the first use decides which one is the current one."""
        if self._id is None:
            from uncaged_dispatcher.conversations.catalog import chosen_conversation

            self._id = chosen_conversation(self.engine().store, self._name, now_ms())
        return self._id

    def enter(self, id: str) -> None:
        """Use another conversation from now on."""
        self._id = id

    @contextmanager
    def released(self, id: str) -> Iterator[None]:  # noqa: ARG002 - nothing is held between lines
        """Leave a conversation for the length of the block."""
        yield

    def run_line(self, line: str) -> int:
        """Run a line to its end and return its exit code."""
        found = verb_line(line)
        return self.run_sentence(line) if found is None else self.run_verb_line(found)

    def run_verb_line(self, line: str, more: Sequence[str] = ()) -> int:
        """Run a verb with its mark; *more* are further arguments, which are not split."""
        from uncaged_dispatcher.conversations.requests import check_text

        for text in (line, *more):
            check_text(text)
        return run_verb([*verb_words(line), *more], self)

    def run_reason(self, text: str) -> int:
        """Let the flow `reason` work on a text, as a request of the conversation."""
        return self.run_sentence(text, reason=True)

    def run_sentence(
        self, text: str, launching: Launching | None = None, *, reason: bool = False
    ) -> int:
        """Submit a sentence and follow it to its end. launching: a worker that is being started."""
        outcome = submit_request(
            self.engine(),
            self.conversation_id() if self.is_shell else self._name,
            detach=self._options.detach,
            as_json=self.as_json,
            verbose=self._options.verbose,
            launching=launching,
            text=text,
            reason=reason,
            **self._options.fields(),
        )
        return run_verb(outcome.verb, self) if outcome.verb else outcome.exit_code
