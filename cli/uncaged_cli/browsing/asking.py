"""The verbs `browser ask` and `browser extract`: questions about pages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from uncaged_bundles.errors import NotFoundError, UncagedError, UsageError

from ..asked_model import chosen_model, has_model, model_session
from ..display import json_output
from ..display.output import Styled, note, result
from ..inputs.options import json_option
from ..runtime import now_ms, open_engine
from .session import performed, running_session, session_option

__all__ = ["ask", "extract"]

ANY_DATA = {"type": "object", "description": "what was asked for, with a key for each thing"}
model_option = click.option(
    "--model", metavar="NAME", help="The model to ask, of those in config.yaml."
)


@click.command("ask", short_help="Answer a question from a page, or from all indexed pages.")
@click.argument("question")
@click.option(
    "--all", "everywhere", is_flag=True, help="From all indexed pages, not from the current page."
)
@model_option
@click.option("--no-model", is_flag=True, help="Show the nearest passages, and ask no model.")
@session_option
@json_option
def ask(
    *, question: str, everywhere: bool, model: str | None, no_model: bool, name: str, as_json: bool
) -> None:
    """Answer QUESTION from the page in the current tab of a session, with citations.

    A configured model gets the nearest passages only; a citation that is not in them is left out.
    Without a model, the answer is these passages.
    """
    from uncaged_browser.knowledge.answers import MOST_PASSAGES, answer_from, nearest_in_page
    from uncaged_browser.knowledge.index import KnowledgeIndex, knowledge_path
    from uncaged_browser.knowledge.pages import read_page

    if model is not None and no_model:
        raise UsageError("--model and --no-model exclude each other")
    engine = open_engine(of_machine=True)
    if everywhere:
        found = KnowledgeIndex(knowledge_path(engine.store)).find(question, MOST_PASSAGES)
        where, advice = "indexed page", "add pages: uncaged-workflow browser knowledge add"
    else:
        with running_session(name) as client:
            page = read_page(lambda operation: performed(client, operation), now_ms())
        found = nearest_in_page(page, question)
        where, advice = "passage of this page", "--all looks in all indexed pages"
    if not found:
        raise NotFoundError(f"no {where} shares a word with {question[:200]!r}; {advice}")
    asks = model is not None or (not no_model and has_model(engine.config))
    chosen = chosen_model(engine.config, model) if asks else None
    asking = None if chosen is None else model_session(chosen).ask
    answer = answer_from(question, found, "" if chosen is None else chosen.name, asking)
    if as_json:
        json_output.document({"question": question, **answer.document()})
        return
    if answer.note:
        note(Styled("warning: ", "yellow"), answer.note)
    if answer.by != "passages":
        result(answer.text)
    for one in answer.citations:
        shown = one.passage.text if answer.by == "passages" or not answer.answered else one.quote
        result(
            Styled(f"[{one.number}] ", "cyan"),
            f"{one.passage.title or one.passage.url} ({one.passage.url})",
        )
        result(shown)


@click.command("extract", short_help="Take data, or one element, out of the current page.")
@click.argument("wanted", metavar="TEXT", default="")
@click.option(
    "--schema",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The JSON Schema of the data; without it, an object of the model's choice.",
)
@click.option(
    "--component", is_flag=True, help="Find the element that TEXT describes, and print its target."
)
@click.option(
    "--again", is_flag=True, help="With --component: ask the model although a target was kept."
)
@model_option
@session_option
@json_option
def extract(
    *,
    wanted: str,
    file: Path | None,
    component: bool,
    again: bool,
    model: str | None,
    name: str,
    as_json: bool,
) -> None:
    """Let a model take the data that TEXT describes out of the page in the current tab.

    The model gets the page view; values of password fields and secrets that flows typed are not in
    it. A target that was found is kept for the host, and used the next time without a model.
    """
    from uncaged_browser.questions.answering import PageQuestioner
    from uncaged_browser.questions.requests import Extract, ExtractComponent, PageQuestion
    from uncaged_browser.questions.selectors import KeptSelectors, selectors_path
    from uncaged_models.errors import ModelFailed

    if component and file is not None:
        raise UsageError("--component finds an element; --schema is for data")
    if not wanted.strip() and (component or file is None):
        raise UsageError("say what to take out of the page")
    engine = open_engine(of_machine=True)
    schema: Mapping[str, Any] = ANY_DATA if file is None else _schema(file)
    question: PageQuestion = (
        ExtractComponent(text=wanted, again=again)
        if component
        else Extract(text=wanted, schema=schema)
    )
    with running_session(name) as client:
        questioner = PageQuestioner(
            lambda operation: performed(client, operation),
            lambda asked: model_session(chosen_model(engine.config, model)).ask(asked),
            KeptSelectors(selectors_path(engine.store)),
        )
        try:
            value: Any = questioner.answer(question)
        except ModelFailed as exc:
            raise UncagedError(str(exc)) from exc
    if as_json:
        json_output.document(value)
    elif component:
        result(json.dumps(value["target"], ensure_ascii=False))
        note(
            f"found by {'a kept target' if value['by'] == 'selector' else 'the model'}: {value['text'][:200]}"
        )
    else:
        result(json.dumps(value["data"], ensure_ascii=False, indent=2))


def _schema(file: Path) -> Mapping[str, Any]:
    """Return the JSON Schema in a file."""
    from uncaged_models.data import read_schema

    try:
        return read_schema(json.loads(file.read_text("utf-8")), (str(file),))
    except (OSError, ValueError, RecursionError) as exc:
        raise UsageError(f"{file}: no JSON Schema: {exc}") from exc
