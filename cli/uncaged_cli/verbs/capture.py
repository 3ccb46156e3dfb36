"""The verb `capture`: makes a flow of what the agent of a thread did."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
from uncaged_browser.session.address import DEFAULT_SESSION
from uncaged_bundles.errors import NotFoundError, RefusedError, UsageError
from uncaged_bundles.records import replace

from ..inputs.options import accept_option, json_option, thread_argument
from ..inputs.recording_answers import may_save, named_values
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_capture.candidate import FlowCandidate
    from uncaged_engine.api import Engine, ThreadView
    from uncaged_engine.threads.step_traces import StepTrace

    from ..capture_words import WordingOptions

FORMS = ("web", "script", "task", "block", "workflow")


@click.command()
@thread_argument
@click.option(
    "--as",
    "form",
    type=click.Choice(FORMS),
    help="Kind of flow: web, of what was done in a browser; script, of commands and changes of files;"
    " task or block, of the flows that were called; workflow, of the path that roles took. Without it:"
    " web, script or task.",
)
@click.option("--name", metavar="NAME", help="Name of the flow; without it, from the prompt.")
@click.option(
    "--param",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Make a value a parameter. May be repeated. Without it, values of the prompt that recur.",
)
@click.option(
    "--example",
    "examples",
    multiple=True,
    metavar="NAME=VALUE",
    help="Run the flow once more with this value of a parameter before it is saved. May be repeated, for"
    " further parameters of the same run.",
)
@click.option(
    "--polish",
    is_flag=True,
    help="Let a model improve the name, the description and the sentence patterns.",
)
@click.option(
    "--model",
    metavar="NAME",
    help="The model of --polish, of those in config.yaml; without it, the default one.",
)
@click.option("--step", type=click.IntRange(min=1), metavar="N", help="The role step to capture.")
@click.option("--resend", is_flag=True, help="Let the proof run send data again, without asking.")
@click.option("--unproved", is_flag=True, help="Save the flow even if the proof run fails.")
@accept_option
@shared_option
@json_option
def command(
    thread: str,
    *,
    form: str | None,
    name: str | None,
    pairs: tuple[str, ...],
    examples: tuple[str, ...],
    polish: bool,
    model: str | None,
    step: int | None,
    resend: bool,
    unproved: bool,
    accept: bool,
    as_json: bool,
) -> None:
    """Make a flow of what the agent of THREAD did, so that it needs no agent any more.

    The actions of its agent in the browser become a web flow, its commands and changes of files a
    script flow, its calls of flows a task flow. The flow runs once more before it is saved. That
    proof run repeats nothing that leaves the machine without a yes: a flow that would is saved as
    unproved from that step on. With --example, a second run with other values follows, in which
    nothing of that kind is done.

    \b
    Examples:
      uncaged-workflow capture latest --as task --name week-report
      uncaged-workflow capture latest --example genre=jazz --polish
    """
    from uncaged_engine.threads.step_traces import traces_of

    from ..capture_words import WordingOptions

    engine = open_engine()
    view = engine.thread(thread)
    check_success(view)
    view = without_prompt_secrets(engine, view)
    prompt = prompt_of(view.start)
    id = view.summary.thread_id
    source = _Source(
        engine=engine,
        view=view,
        traces=traces_of(engine.store, view.records),
        name=name or name_from(prompt, id),
        prompt=prompt,
        named=named_values(pairs),
        step=step,
    )
    if model is not None and not polish:
        raise UsageError("--model is for --polish")
    words = WordingOptions(polish=polish, model=model, has_name=name is not None, examples=examples)
    answers = _Answers(accept=accept, resend=resend, unproved=unproved, as_json=as_json)
    chosen = form or form_of(source)
    if chosen == "web":
        _capture_web(source, words, answers)
    else:
        _capture(_candidate(source, chosen), source, words, answers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """Thread to capture. named: values by parameter name. step: the role step, None if there is one
    only.
    """

    engine: Engine
    view: ThreadView
    traces: Sequence[StepTrace]
    name: str
    prompt: str
    named: Mapping[str, str]
    step: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answers:
    """Options that answer questions beforehand."""

    accept: bool
    resend: bool
    unproved: bool
    as_json: bool


def form_of(source: _Source) -> str:
    """Return the form that fits a thread: web if an agent used a browser, script if one ran
    commands or changed files, else task. The steps of a flow without agents are a task as well.

    Raises:
        NotFoundError: no agent of the step called a tool, or roles answered and called none.
    """
    from uncaged_capture.forms.script_flow import has_script_calls

    traces = [one for one in source.traces if source.step is None or one.seq == source.step]
    if not traces and not any("role" in record for record in source.view.records):
        return "task"
    if not traces:
        id = source.view.summary.thread_id
        where = "" if source.step is None else f"step {source.step} of "
        raise NotFoundError(
            f"{where}thread {id} has no record of a tool call: its agents made none, or are of a kind that names none."
            f" `uncaged-workflow capture {id} --as workflow` makes a flow of the path that its roles took"
        )
    if any("recording" in trace.notes for trace in traces):
        return "web"
    return "script" if any(map(has_script_calls, traces)) else "task"


def _capture_web(source: _Source, words: WordingOptions, answers: _Answers) -> None:
    """Capture what an agent did in a browser."""
    from uncaged_browser.recording.summary import summary_of
    from uncaged_capture.forms.web import captured_web, parameters_from, recording_of

    from ..capture_words import WordedFlow
    from ..recorded_flow import KeptRecording, RecordedFlow

    id = source.view.summary.thread_id
    recording = recording_of(source.traces, source.name, id, source.step)
    parameters = source.named or parameters_from(recording, source.prompt)
    web = captured_web(recording, parameters, source.prompt)
    before = RecordedFlow(source.engine, recording, parameters, web.recipe)
    wording, example = words.chosen(
        source.engine,
        WordedFlow(
            prompt=source.prompt,
            wording=web.wording,
            steps=[summary_of(step) for step in web.recipe["steps"]],
            parameters=web.listed,
            schema=before.schema,
            recorded=before.values,
        ),
    )
    recipe = replace(web, wording=wording).recipe
    flow = RecordedFlow(source.engine, recording, parameters, recipe, wording)
    flow.show(quiet=answers.as_json)
    proof = flow.prove(DEFAULT_SESSION, accept=answers.accept, resend=answers.resend)
    if proof.state == "failed":
        may_save(proof, save=answers.unproved, keep=KeptRecording(recording, None).keep)
    proof = flow.run_example(DEFAULT_SESSION, proof, example)
    added = flow.add(proof)
    flow.report(added, proof, as_json=answers.as_json)


def _capture(
    candidate: FlowCandidate, source: _Source, words: WordingOptions, answers: _Answers
) -> None:
    """Capture a flow whose proof is a trial."""
    from uncaged_bundles.validation.validate import read_bundle
    from uncaged_capture.forms.form import default_of
    from uncaged_engine.services.registry import KNOWN

    from ..capture_words import WordedFlow
    from ..captured_flow import CapturedFlow

    wording, example = words.chosen(
        source.engine,
        WordedFlow(
            prompt=source.prompt,
            wording=candidate.wording,
            steps=candidate.steps,
            parameters=candidate.parameters,
            schema=read_bundle(candidate.source(), KNOWN).descriptor.parameters,
            recorded={one.name: default_of(one) for one in candidate.parameters},
        ),
    )
    flow = CapturedFlow(source.engine, candidate.reworded(wording))
    flow.show(quiet=answers.as_json)
    proof = flow.prove(accept=answers.accept, resend=answers.resend)
    proof = flow.run_example(proof, example)
    flow.require_result(proof, unproved=answers.unproved)
    added = flow.add(proof)
    flow.report(added, proof, as_json=answers.as_json)


def _candidate(source: _Source, form: str) -> FlowCandidate:
    """Return the flow of a form."""
    if form == "workflow":
        from uncaged_capture.forms.workflow import captured_workflow

        bundle = source.engine.bundle(source.view.summary.hash)
        return captured_workflow(source.view, bundle.descriptor.raw, source.name)
    if form == "script":
        from uncaged_capture.forms.script_flow import script_candidate

        return script_candidate(
            source.engine,
            source.view,
            source.traces,
            name=source.name,
            step=source.step,
            named=source.named,
            environment=os.environ,
        )
    from uncaged_capture.steps import flow_steps

    steps = flow_steps(
        source.engine, source.view, source.traces, step=source.step, named=source.named
    )
    if form == "block":
        from uncaged_capture.forms.block import captured_block

        return captured_block(steps, source.name)
    from uncaged_capture.forms.task import captured_task

    return captured_task(steps, source.name)


def check_success(view: ThreadView) -> None:
    """Refuse a thread that did not reach its goal."""
    summary = view.summary
    if summary.status != "completed" or summary.success is False:
        status = "completed without success" if summary.status == "completed" else summary.status
        raise RefusedError(
            f"thread {summary.thread_id} is {status}; only a thread with success is captured"
        )


def without_prompt_secrets(engine: Engine, view: ThreadView) -> ThreadView:
    """Return a thread whose prompt has ``secret:NAME`` in the place of secrets: names, descriptions
    and questions to a model follow from it.
    """
    from uncaged_capture.wording import without_secrets
    from uncaged_engine.services.secrets import known_secrets

    prompt = without_secrets(prompt_of(view.start), known_secrets(engine.config, os.environ))
    parameters = {**view.start.get("parameters", {}), "prompt": prompt}
    return replace(view, start={**view.start, "parameters": parameters})


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
