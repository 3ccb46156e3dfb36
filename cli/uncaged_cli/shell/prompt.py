"""Interactive shell: a prompt that stays usable while requests run, with completion, history and a
status line.

The main thread alternates between the prompt and what needs the whole terminal: verbs, questions,
scripts. Requests are shown by one thread each.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.filters import is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.shortcuts import CompleteStyle
from uncaged_bundles.clean import clean_line
from uncaged_bundles.errors import RefusedError, UncagedError
from uncaged_dispatcher.conversations.log import read_state
from uncaged_dispatcher.conversations.requests import check_text

from ..display.output import PROGRAM, note
from ..entry import EXIT_INTERRUPTED
from ..inputs.answers import respond
from ..inputs.stores import on_present_store
from ..main import group, guarded
from ..request_run import RequestOutcome, RequestOutput, new_request
from .at_verbs import reason_text, run_verb, verb_line, verb_words
from .completer import LineCompleter
from .foreground import ForegroundQueue
from .history import history_of
from .line_mode import RequestOptions
from .status_line import CostMeter, MeteredView, status_text
from .submission import ShellRequest, Submission
from .terminal_output import TerminalOutput

if TYPE_CHECKING:
    from uncaged_dispatcher.conversations.live import RequestEvent
    from uncaged_engine.api import Engine

GREETING = "A sentence runs a flow; @help lists the verbs; Ctrl-C cancels a request; Ctrl-D leaves."


SETTLE_S = 5.0
"""Time for the result of a request whose thread has ended."""


class InteractiveShell:
    """The shell on a terminal, and the host of its lines."""

    def __init__(self, engine: Engine, conversation: str, options: RequestOptions) -> None:
        """Args: conversation: an id."""
        self.as_json = False
        self.is_shell = True
        self.is_ending = False
        self.scripts: list[Path] = []
        self._engine = engine
        self._options = options
        self._id = conversation
        self._name = read_state(engine.store, conversation).name
        self._loop = asyncio.new_event_loop()
        self._foreground = ForegroundQueue(self._wake)
        self._meter = CostMeter(self._redraw)
        self._submission = Submission(engine, self._redraw)
        self._completer = LineCompleter(engine, lambda: group)
        self._prompt: PromptSession[str | None] = PromptSession(
            history=history_of(engine),
            completer=ThreadedCompleter(self._completer),
            complete_while_typing=True,
            complete_style=CompleteStyle.COLUMN,
            bottom_toolbar=self._status,
            key_bindings=self._bindings(),
        )
        self._output = TerminalOutput(self._prompt.app, self._loop)

    def run(self) -> int:
        """Read and run lines until the person leaves."""
        note(GREETING)
        self._submission.join(self._id)
        with self._output.installed():
            partial = ""
            while not self.is_ending:
                try:
                    with self._output.foreground():
                        self._foreground.run()
                    line = self._read(partial)
                except EOFError:
                    break
                except KeyboardInterrupt:  # between two prompts
                    continue
                partial = self._prompt.default_buffer.text if line is None else ""
                if line is not None and line.strip() and not line.strip().startswith("#"):
                    self._accept(line.strip())
            self._leave()
        return 0

    def engine(self) -> Engine:
        """Return the engine of the store."""
        return self._engine

    def conversation_id(self) -> str:
        """Return the conversation to which new requests belong."""
        return self._id

    def enter(self, id: str) -> None:
        """Use another conversation from now on; what runs in the former one goes on."""
        former, self._id = self._id, id
        if former != id:
            with suppress(RefusedError):
                self._submission.leave(former)
        self._name = read_state(self._engine.store, id).name
        self._submission.join(id)

    @contextmanager
    def released(self, id: str) -> Iterator[None]:
        """Leave a conversation for the length of the block.

        Raises:
            RefusedError: requests of this shell run there.
        """
        self._submission.leave(id)
        try:
            yield
        finally:
            with suppress(UncagedError):
                read_state(self._engine.store, self._id)
                self._submission.join(self._id)

    def run_line(self, line: str) -> int:
        """Run a line of a script to its end. Ctrl-C cancels its request."""
        found = verb_line(line)
        return self._run_verb(found) if found is not None else self._run_to_end(self._new(line))

    def run_reason(self, text: str) -> int:
        """Let the flow `reason` work on a text. Ctrl-C cancels the request."""
        return self._run_to_end(self._new(text, reason=True))

    def _run_to_end(self, one: ShellRequest) -> int:
        outcome: list[RequestOutcome] = []
        show = on_present_store(lambda: outcome.append(self._shown(one)))
        shown = threading.Thread(target=show, name="request", daemon=True)
        # its output is not held back: nothing else is shown meanwhile
        with self._output.background():
            shown.start()
            interrupted = self._foreground.wait_for(shown, lambda: self._cancel(one))
        if interrupted:
            return EXIT_INTERRUPTED
        [ended] = outcome
        return run_verb(ended.verb, self) if ended.verb else ended.exit_code

    def _accept(self, line: str) -> None:
        found = verb_line(line)
        text = None if found is None else reason_text(found)
        if found is None or text is not None:
            guarded(lambda: self._submit(text or line, reason=text is not None), [line])
            return
        with self._output.foreground():
            try:
                guarded(lambda: self._run_verb(found), [found])
            except SystemExit as exc:  # a verb of another distribution may end the process
                note(f"the verb ended with {exc.code!r}")
        with suppress(UncagedError):  # `conversation rename` may have run, or `pack disable`
            self._engine.read_sentences()
            self._name = read_state(self._engine.store, self._id).name

    def _run_verb(self, line: str) -> int:
        check_text(line)
        return run_verb(verb_words(line), self)

    def _submit(self, text: str, *, reason: bool) -> None:
        one = self._new(text, reason=reason)
        show = on_present_store(lambda: self._show(one))
        threading.Thread(target=show, name="request", daemon=True).start()

    def _new(self, text: str, *, reason: bool = False) -> ShellRequest:
        request = new_request(text=text, reason=reason, **self._options.fields())
        return self._submission.submit(self._id, request)

    def _show(self, one: ShellRequest) -> None:
        """Show a request to its end; a verb that it means is run between two prompts."""
        outcome = self._shown(one)
        if outcome.verb:
            self._foreground.put(lambda: guarded(lambda: run_verb(outcome.verb, self), []))

    def _shown(self, one: ShellRequest) -> RequestOutcome:
        outcome = RequestOutcome(exit_code=0)

        def show() -> int:
            nonlocal outcome
            output = RequestOutput(
                self._engine,
                detach=False,
                as_json=False,
                verbose=self._options.verbose,
                view=MeteredView(self._meter),
            )
            with closing(self._counted(one)) as events:
                outcome = output.show_all(events)
            return outcome.exit_code

        code = guarded(show, [one.request.text])
        return outcome if outcome.verb else RequestOutcome(exit_code=code)

    def _counted(self, one: ShellRequest) -> Generator[RequestEvent, None, None]:
        """Yield the events of a request, and count what a model's translation of it used."""
        asked: set[str] = set()
        for event in self._submission.events(one, self._respond):
            for thread in asked:
                with suppress(UncagedError):
                    self._meter.count(self._engine, thread)
            asked = {str(event["threadId"])} if event["event"] == "translating" else set()
            yield event

    def _respond(self, question: Mapping[str, Any]) -> Mapping[str, object]:
        """Ask a question between two prompts.

        Raises:
            RefusedError: Ctrl-C, or the answer was no.
        """

        is_thread = question["kind"] == "thread"

        def ask() -> Mapping[str, object]:
            try:
                return respond(question)
            except (click.Abort, KeyboardInterrupt) as exc:
                raise RefusedError(
                    f"not answered; `{PROGRAM} answer {question['threadId']}` asks again, `{PROGRAM} conversation cancel` ends the request"
                    if is_thread
                    else "cancelled; nothing was run"
                ) from exc

        return self._foreground.result_of(ask)

    def _read(self, partial: str) -> str | None:
        """Read a line; None if something needs the terminal."""
        self._prompt.app.erase_when_done = False
        message = f"{clean_line(self._name)}> "
        return self._loop.run_until_complete(
            self._prompt.prompt_async(message, default=partial, handle_sigint=True)
        )

    def _wake(self) -> None:
        """Interrupt the prompt. Any thread may call it."""
        self._loop.call_soon_threadsafe(self._interrupt_prompt)

    def _interrupt_prompt(self) -> None:
        app = self._prompt.app
        if self._foreground.is_empty or app.future is None or app.future.done():
            return
        app.erase_when_done = True
        app.exit(result=None)

    def _redraw(self) -> None:
        self._prompt.app.invalidate()

    def _status(self) -> str:
        return status_text(self._name, self._submission.snapshot(self._id), self._meter.sum)

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        @bindings.add("c-c", filter=~is_searching)
        @bindings.add("<sigint>")
        def interrupt(event: KeyPressEvent) -> None:
            if event.current_buffer.text:
                event.current_buffer.reset()
            else:
                threading.Thread(target=self._cancel_first, name="cancel", daemon=True).start()

        return bindings

    def _cancel_first(self) -> None:
        """Cancel the running request of this shell, else the one that waits longest."""
        found = self._submission.unsettled(self._id)
        if not found:
            note(
                "no request of this shell runs; @conversation status shows the others, and Ctrl-D leaves"
            )
            return
        self._cancel(next((one for one in found if one.running), found[0]))

    def _cancel(self, one: ShellRequest) -> None:
        def cancel() -> None:
            note(f"cancelling: {clean_line(one.request.text)[:200]}")
            self._submission.cancel(one.conversation, one.request.id)

        guarded(cancel, [])

    def _leave(self) -> None:
        """Cancel what has not started, say what goes on, and leave the conversations."""
        for one in self._submission.unsettled():
            text = clean_line(one.request.text)[:200]
            if one.started and not one.running and one.settled.wait(SETTLE_S):
                continue  # its thread had ended
            if one.started:
                note(f"{text!r} goes on in its worker; `uncaged-workflow ps` shows its thread")
            else:
                with suppress(UncagedError, TimeoutError):
                    self._submission.cancel(one.conversation, one.request.id)
                note(f"{text!r} was cancelled; it had not started")
        self._submission.close()
        self._completer.close()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()
