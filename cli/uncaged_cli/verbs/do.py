"""The verb `do`: understands a sentence, runs the flow that it asks for, and follows the thread."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..inputs.completion import complete_conversations
from ..inputs.options import detach_option, json_option, verbose_option
from ..request_run import run_request, run_verb
from ..runtime import now_ms, open_engine

if TYPE_CHECKING:
    from uncaged_engine.worker.client import Launching


@click.command()
@click.argument("words", nargs=-1, required=True, metavar="SENTENCE")
@click.option(
    "--explain",
    "only_explain",
    is_flag=True,
    help="Start nothing; print how each tier reads the sentence.",
)
@click.option("--yes", is_flag=True, help="Run what was understood without asking.")
@click.option(
    "--conversation",
    "conversation",
    metavar="NAME",
    shell_complete=complete_conversations,
    help="The conversation to use instead of the current one.",
)
@click.option("--no-model", is_flag=True, help="Do not ask a model what the sentence means.")
@click.option("--no-grammar", is_flag=True, help="Do not read the sentence by patterns.")
@click.option(
    "--attach",
    "attachments",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="A file for the model. May be repeated.",
)
@verbose_option
@detach_option
@json_option
@click.pass_obj
def command(
    launching: Launching | None,
    /,
    *,
    words: tuple[str, ...],
    only_explain: bool,
    yes: bool,
    conversation: str | None,
    no_model: bool,
    no_grammar: bool,
    attachments: tuple[Path, ...],
    verbose: bool,
    detach: bool,
    as_json: bool,
) -> int:
    """Understand SENTENCE, run the flow that it asks for, and follow the thread to its end.

    The exit code is that of the thread; 5 if nothing reads the sentence. Flows that are marked, and
    what only a model understood, run after a yes. Ctrl-C stops following; the thread keeps running.

    A sentence that begins with @ is a verb of this command with its arguments.

    \b
    Examples:
      uncaged-workflow do "list the pdf files in downloads"
      uncaged-workflow do "what can you do" --json
      uncaged-workflow do "@threads --status failed"
    """
    text = " ".join(words).strip()
    if text.startswith("@"):
        return run_verb([*shlex.split(words[0]), *words[1:]])
    if only_explain:
        return run_verb(["explain", text, *(["--json"] if as_json else [])])
    engine = open_engine()
    from uncaged_dispatcher.conversations.catalog import current_conversation, find_conversation
    from uncaged_dispatcher.conversations.reader import ConversationReader
    from uncaged_dispatcher.conversations.requests import ConversationRequest
    from uncaged_dispatcher.conversations.sessions import ConversationSession, new_request_id

    now = now_ms()
    request = ConversationRequest(
        id=new_request_id(now),
        text=text,
        directory=str(Path.cwd()),
        agreed=yes,
        model=not no_model,
        grammar=not no_grammar,
        attachments=tuple(str(path.absolute()) for path in attachments),
    )
    id = (
        find_conversation(engine.store, conversation)
        if conversation is not None
        else current_conversation(engine.store, now)
    )
    session = ConversationSession(engine, id, lambda: ConversationReader(engine), now_ms)
    return run_request(
        engine,
        session,
        request,
        detach=detach,
        as_json=as_json,
        verbose=verbose,
        launching=launching,
    )
