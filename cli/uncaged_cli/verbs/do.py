"""The verb `do`: understands a sentence, runs the flow that it asks for, and follows the thread."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource
from uncaged_bundles.errors import UsageError

from ..inputs.options import conversation_option, detach_option, json_option, verbose_option
from ..inputs.stores import inherited, shared_option, words_of_store
from ..main import run
from ..shell.at_verbs import MARK
from ..shell.line_mode import LineMode, RequestOptions

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
@conversation_option
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
@shared_option
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
    options = RequestOptions(
        agreed=yes,
        model=not no_model,
        grammar=not no_grammar,
        attachments=tuple(str(path.absolute()) for path in attachments),
        detach=detach,
        as_json=as_json,
        verbose=verbose,
    )
    if only_explain:
        named = [] if conversation is None else ["--conversation", conversation]
        more = [*named, *words_of_store(), *(["--json"] if as_json else [])]
        return run(["explain", *more, "--", text])
    lines = LineMode(options, conversation=conversation)
    if text.startswith(MARK):
        refuse_options(click.get_current_context(), text)
        return lines.run_verb_line(words[0].lstrip(), words[1:])
    with inherited():
        return lines.run_sentence(text, launching)


def refuse_options(context: click.Context, sentence: str) -> None:
    """Refuse options before a verb, except --json: they would have no effect.

    Raises:
        UsageError: there is one.
    """
    for option in context.command.params:
        source = context.get_parameter_source(str(option.name))
        if source is ParameterSource.COMMANDLINE and option.name not in ("words", "as_json"):
            raise UsageError(
                f"{option.opts[-1]} belongs to sentences; a verb has options of its own: {sentence.split(maxsplit=1)[0]} --help"
            )
