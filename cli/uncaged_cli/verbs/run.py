"""The verb `run`: starts a thread of a flow, follows it, and exits with its result."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from uncaged_bundles.errors import UsageError

from ..capture_proposal import propose_capture
from ..display import json_output
from ..display.output import is_terminal, note, result
from ..display.started import follow_or_print
from ..inputs.consent import ask_once, is_attended
from ..inputs.options import (
    agent_option,
    agent_settings_option,
    detach_option,
    flow_argument,
    json_option,
    limit_options,
    parameter_options,
    parse_agent_settings,
    parse_agents,
    screenshots_option,
    verbose_option,
    workspace_options,
)
from ..inputs.parameters import gather
from ..inputs.stores import shared_option, words_of_store
from ..main import run as run_words
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_bundles.contract import Descriptor
    from uncaged_engine.api import Engine
    from uncaged_engine.worker.client import Launching


@click.command()
@flow_argument
@click.option(
    "--prompt", default="", metavar="TEXT|-", help="The task; - reads it from standard input."
)
@parameter_options
@limit_options
@screenshots_option
@agent_option
@agent_settings_option
@workspace_options
@click.option(
    "--estimate",
    "only_estimate",
    is_flag=True,
    help="Start nothing; print the time, steps, tokens and cost of past threads of this version.",
)
@click.option(
    "--help-flow",
    is_flag=True,
    help="Start nothing; print the description and the parameters of FLOW.",
)
@click.option(
    "--heal",
    type=click.Choice(["off", "propose", "apply"]),
    help="A web flow's element that is not found: take one that is like it, and propose (apply: accept) a version with it.",
)
@click.option(
    "--learn",
    "learned",
    metavar="NAME",
    help="After success, make the flow NAME of what the agent did, with the questions of `capture`.",
)
@click.option(
    "--priority",
    type=click.IntRange(-1000, 1000),
    default=0,
    metavar="N",
    help="On a shared store: waiting threads of a higher one are taken first; 0 without this.",
)
@shared_option
@verbose_option
@detach_option
@json_option
@click.pass_obj
def command(
    launching: Launching | None,
    /,
    *,
    flow: str,
    prompt: str,
    pairs: tuple[str, ...],
    params_file: Path | None,
    agents: tuple[str, ...],
    agent_settings: tuple[str, ...],
    only_estimate: bool,
    help_flow: bool,
    learned: str | None,
    verbose: bool,
    detach: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Start a thread of FLOW and follow it to its end.

    The exit code is the result of the thread. Ctrl-C stops following; the thread keeps running.

    \b
    Examples:
      uncaged-workflow run solve-issue --prompt "the second page repeats a row" --workspace shop
      uncaged-workflow run solve-issue --prompt - --agent claude --agent reviewer=person < ISSUE.md
      uncaged-workflow run solve-issue --prompt - --agent-option budgetSeconds=300 < ISSUE.md
      uncaged-workflow run list-files --param path=/etc --param "filter=*.conf"
    """
    from uncaged_engine.api import RunOptions

    run_options = RunOptions(
        agents=parse_agents(agents),
        agent_settings=parse_agent_settings(agent_settings),
        attended=is_attended(detach=detach, as_json=as_json),
        **options,
    )
    if learned is not None:
        check_learning(learned, detach=detach, as_json=as_json)
    engine = open_engine()
    if run_options.priority and not engine.is_shared:
        raise UsageError(
            "--priority orders the threads of a shared store; one of a directory starts at once"
        )
    bundle = engine.bundle(flow)
    descriptor = bundle.descriptor
    if help_flow:
        return show_help(flow, descriptor, as_json=as_json)
    if only_estimate:
        return show_estimate(engine, flow, as_json=as_json)
    ask_once(engine, flow, descriptor.asked_roles, run_options.agents)
    thread_id = engine.run(
        flow,
        prompt=read_prompt(prompt),
        params=gather(params_file, pairs, descriptor.parameters),
        options=run_options,
        launching=launching,
    )
    if engine.is_shared and "role" in descriptor.policy.limits:
        from ..display.fetched import note_left_behind

        note_left_behind(engine.thread(thread_id).start)
    fields = {"hash": bundle.hash}
    code = follow_or_print(
        engine, thread_id, detach=detach, as_json=as_json, verbose=verbose, fields=fields
    )
    if code or detach or as_json:
        return code
    if learned is not None:
        return run_words(["capture", thread_id, "--name", learned, *words_of_store()])
    propose_capture(engine, thread_id)
    return code


def check_learning(name: str, *, detach: bool, as_json: bool) -> None:
    """Check the name of the flow that is to be made, and that its questions can be asked.

    Raises:
        UsageError: it is no name of a flow, or the thread is not followed.
    """
    from uncaged_bundles.names import new_flow_name

    new_flow_name(name)
    if detach or as_json:
        raise UsageError("--learn asks questions at the end; without them: run, then `capture`")


def show_help(flow: str, descriptor: Descriptor, *, as_json: bool) -> int:
    """Print the description and the parameters of a flow."""
    if as_json:
        json_output.document(
            {
                "flow": flow,
                "description": descriptor.description,
                "parameters": descriptor.parameters,
            }
        )
        return 0
    from .show import heading, paragraph, parameter_lines, show_sentences

    paragraph(descriptor.description)
    heading("Parameters (--param NAME=VALUE, or all in a file: --params FILE)")
    for line in parameter_lines(descriptor.parameters) or ["none besides --prompt"]:
        paragraph(line, bullet="- ")
    show_sentences(descriptor.raw)
    return 0


def show_estimate(engine: Engine, flow: str, *, as_json: bool) -> int:
    """Print the estimate for the flow's version."""
    found = engine.estimate(flow)
    if as_json:
        from dataclasses import asdict

        fields = asdict(found)
        json_output.document({"hash": fields.pop("hash"), "threads": fields.pop("n"), **fields})
        return 0
    from ..display.costs import estimate_lines

    for line in estimate_lines(found, flow):
        result(line)
    return 0


def read_prompt(prompt: str) -> str:
    """Return the prompt; ``-`` reads it from standard input."""
    if prompt != "-":
        return prompt
    if is_terminal(sys.stdin):
        note("enter the prompt, then press Ctrl-D:")
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise UsageError(f"the prompt on standard input is not UTF-8: {problem}") from problem
