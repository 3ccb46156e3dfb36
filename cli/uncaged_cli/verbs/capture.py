"""The verb `capture`: makes a flow of what the agent of a thread did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from uncaged_browser.session.address import DEFAULT_SESSION
from uncaged_bundles.errors import RefusedError

from ..inputs.options import accept_option, json_option, thread_argument
from ..inputs.recording_answers import may_save, named_values
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_engine.api import ThreadView

FORMS = ("web",)


@click.command()
@thread_argument
@click.option(
    "--as",
    "form",
    type=click.Choice(FORMS),
    default="web",
    help="Kind of flow: web, of what was done in a browser.",
)
@click.option("--name", metavar="NAME", help="Name of the flow; without it, from the prompt.")
@click.option(
    "--param",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Make a value a parameter. May be repeated. Without it, values of the prompt that recur.",
)
@click.option("--step", type=click.IntRange(min=1), metavar="N", help="The role step to capture.")
@click.option("--resend", is_flag=True, help="Let the proof run send data again, without asking.")
@click.option("--unproved", is_flag=True, help="Save the flow even if the proof run fails.")
@accept_option
@json_option
def command(
    thread: str,
    *,
    form: str,
    name: str | None,
    pairs: tuple[str, ...],
    step: int | None,
    resend: bool,
    unproved: bool,
    accept: bool,
    as_json: bool,
) -> None:
    """Make a flow of what the agent of THREAD did, so that it needs no agent any more.

    The actions of its agent in the browser become a web flow. The steps are performed once more in
    a fresh context before it is saved. That proof run sends no data without a yes: a flow that
    would is saved as unproved from that step on.

    \b
    Example:
      uncaged-workflow capture latest --as web --name chair-price
    """
    from uncaged_browser.recording.recording import Recording
    from uncaged_capture.forms.web import captured_recipe, parameters_from, recording_of
    from uncaged_capture.traces import traces_of

    from ..recorded_flow import KeptRecording, RecordedFlow

    del form  # the only one
    engine = open_engine()
    view = engine.thread(thread)
    check_success(view)
    prompt = prompt_of(view.start)
    id = view.summary.thread_id
    flow_name = name or name_from(prompt, id)
    recording: Recording = recording_of(traces_of(engine.store, view.records), flow_name, id, step)
    parameters = named_values(pairs) or parameters_from(recording, prompt)
    recipe = captured_recipe(recording, parameters, prompt)
    flow = RecordedFlow(engine, recording, parameters, recipe)
    flow.show(quiet=as_json)
    proof = flow.prove(DEFAULT_SESSION, accept=accept, resend=resend)
    if proof.state == "failed":
        may_save(proof, save=unproved, keep=KeptRecording(recording, None).keep)
    added = flow.add(proof)
    flow.report(added, proof, as_json=as_json)


def check_success(view: ThreadView) -> None:
    """Refuse a thread that did not reach its goal."""
    summary = view.summary
    if summary.status != "completed" or summary.success is False:
        status = "completed without success" if summary.status == "completed" else summary.status
        raise RefusedError(
            f"thread {summary.thread_id} is {status}; only a thread with success is captured"
        )


def prompt_of(start: Mapping[str, Any]) -> str:
    return str(start.get("parameters", {}).get("prompt", ""))


def name_from(prompt: str, thread: str) -> str:
    """Return a name from the first words of a prompt; that of the thread without any."""
    from uncaged_bundles.builders.recipes.recipe import safe_name

    words = " ".join(prompt.split()[:5])
    return (
        safe_name(words)
        if any(letter.isascii() and letter.isalpha() for letter in words)
        else f"captured-{thread[-6:].lower()}"
    )
