"""The commands `browser actions`: what the current page offers to do, its run, and flows made of
it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click
from uncaged_browser.operations import read_operation
from uncaged_browser.session.messages import KEPT
from uncaged_bundles.errors import UsageError

from ..display import json_output
from ..display.output import Piece, Styled, next_step, note, result, table, text_width
from ..display.table import render
from ..inputs.consent import confirmed
from ..inputs.options import accept_option, json_option
from ..inputs.recording_answers import may_save
from ..runtime import open_engine
from .session import performed, running_session, session_option

if TYPE_CHECKING:
    from uncaged_browser.actions.page_action import PageAction
    from uncaged_browser.actions.plan import ActionPlan
    from uncaged_browser.session.client import SessionClient

HEADERS = ("action", "label", "parameters")
DISCOVER_S = 30.0
LISTED_CHOICES = 6
press_option = click.option(
    "--press", metavar="BUTTON", help="The button of a form, if it has several."
)
hosts_option = click.option(
    "--allow-host",
    "allowed",
    multiple=True,
    metavar="HOST",
    help="Another host that it may lead or send to. May be repeated.",
)


@click.group(
    "actions",
    subcommand_metavar="discover | run | keep | record | stop | goal",
    no_args_is_help=True,
)
def command() -> None:
    """Show what the current page offers to do, do it, and keep it as a flow.

    Actions are forms, buttons, links and landmarks of the page and of its frames, and what the
    page's own scripts register. Their names and texts are the page's: they are data.
    """


@command.command("discover", short_help="List what the current page offers to do.")
@session_option
@json_option
def discover(name: str, as_json: bool) -> None:
    """List what the current page offers to do, each action with its name and its parameters. No
    model is asked.
    """
    from uncaged_browser.actions.page_action import read_actions

    with running_session(name) as client:
        found = performed(client, {"do": "actions", "timeout_s": DISCOVER_S})
    if as_json:
        json_output.document({"leftOut": [], "orders": [], **found})
        return
    result(f"{found['title']} ({found['url']})")
    rows: list[list[Piece]] = [
        [Styled(one.name, "cyan"), _label(one), _parameters(one)] for one in read_actions(found)
    ]
    if rows:
        table(render(HEADERS, rows, width=text_width(sys.stdout)))
    for sentence in found.get("leftOut", []):
        note("left out: ", sentence)
    if found.get("orders"):
        note(f"{len(found['orders'])} texts of the page give orders; they are data")
    if rows:
        next_step("uncaged-workflow browser actions run ACTION KEY=VALUE")


@command.command("run", short_help="Perform an action of the current page.")
@click.argument("action", metavar="ACTION")
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@press_option
@hosts_option
@click.option("--yes", is_flag=True, help="Perform it without asking.")
@session_option
@json_option
def run(
    *,
    action: str,
    pairs: tuple[str, ...],
    press: str | None,
    allowed: tuple[str, ...],
    yes: bool,
    name: str,
    as_json: bool,
) -> None:
    """Perform ACTION of the current page. KEY is a parameter or the label of a field.

    What sends, presses or calls something asks first. Links within the site are followed without
    a question. A password is given as secret:NAME.

    \b
    Examples:
      uncaged-workflow browser actions run form:search q=lamp
      uncaged-workflow browser actions run page:add-to-cart id=5 --yes
    """
    from uncaged_browser.actions.run import run_action
    from uncaged_browser.scope import BrowserScope
    from uncaged_browser.secrets import secrets_named
    from uncaged_engine.services.secrets import secret_value

    engine = open_engine(of_machine=True)
    values = named_values(pairs)
    with running_session(name) as client:
        plan = planned(client, action, values, press, allowed)
        scope = BrowserScope.of([plan.host, *allowed])
        secrets = secrets_named(
            values.values(),
            lambda _: [plan.host],
            lambda secret: secret_value(secret, engine.config, os.environ),
        )
        done = run_action(
            plan,
            lambda body: client.perform(KEPT, body, read_operation(body).timeout_s, secrets, scope),
            lambda question: confirmed(question, yes=yes),
        )
    if as_json:
        json_output.document(done)
        return
    if not done["done"]:
        result(f"filled in; nothing was pressed ({done['url']})")
    else:
        result(f"{done['title'] or done['url']} ({done['url']})")
    if done.get("text"):
        result(str(done["text"]))
    if done.get("characters"):
        note(f"the result was cut; it has {done['characters']:,} characters")
    if done.get("left"):
        note("the page was left before the action returned")


@command.command("keep", short_help="Make a flow of an action of the current page.")
@click.argument("action", metavar="ACTION")
@click.argument("pairs", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--as", "flow", required=True, metavar="FLOW", help="Name of the flow.")
@press_option
@hosts_option
@click.option("--resend", is_flag=True, help="Let the proof run send data, without asking.")
@click.option("--unproved", is_flag=True, help="Save the flow even if the proof run fails.")
@session_option
@accept_option
@json_option
def keep(
    *,
    action: str,
    pairs: tuple[str, ...],
    flow: str,
    press: str | None,
    allowed: tuple[str, ...],
    resend: bool,
    unproved: bool,
    name: str,
    accept: bool,
    as_json: bool,
) -> None:
    """Make the flow FLOW of ACTION of the current page. The values given here become parameters,
    with these values as defaults.

    The steps are performed in a fresh context before the flow is saved, without the logins of the
    session. That proof run sends no data without a yes: a flow that would is saved as unproved from
    that step on.

    \b
    Examples:
      uncaged-workflow browser actions keep form:search q=lamp --as find-product
    """
    from uncaged_browser.actions.keeping import recipe_of_action, recording_of_action
    from uncaged_bundles.names import new_flow_name

    from ..recorded_flow import KeptRecording, RecordedFlow

    new_flow_name(flow)
    engine = open_engine(of_machine=True)
    with running_session(name) as client:
        plan = planned(client, action, named_values(pairs), press, allowed)
    recording = recording_of_action(plan, flow, allowed)
    parameters = {one.name: one.text for one in plan.values}
    recorded = RecordedFlow(engine, recording, parameters, recipe_of_action(plan, flow, allowed))
    recorded.show(quiet=as_json)
    proof = recorded.prove(name, accept=accept, resend=resend)
    if proof.state == "failed":
        may_save(proof, save=unproved, keep=KeptRecording(recording, None).keep)
    recorded.report(recorded.add(proof), proof, as_json=as_json)


FORWARDED = {"ignore_unknown_options": True, "allow_interspersed_args": False}


@command.command("record", add_help_option=False, context_settings=FORWARDED)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="NAME [OPTION]...")
def record(words: tuple[str, ...]) -> Any:
    """Record a task in a browser, as the verb `record` does, with its options."""
    from ..verbs.record import command as verb

    return verb.main(list(words), "uncaged-workflow record", standalone_mode=False)


@command.command("stop", short_help="End a recording.")
@session_option
@json_option
def stop(name: str, as_json: bool) -> None:
    """End the recording of a session's tabs. The command that records then goes on with it."""
    with running_session(name) as client:
        client.record("end")
    if as_json:
        json_output.document({"session": name, "stopped": True})
    else:
        result("the recording is ended")


@command.command("goal", short_help="Reach a goal, beginning at the current page.")
@click.argument("goal", metavar="GOAL")
@session_option
@json_option
def reach(goal: str, name: str, as_json: bool) -> Any:
    """Start `web-goal` with GOAL at the address of the current page, in a context of its own, and
    follow it.
    """
    from ..verbs.run import command as verb

    with running_session(name) as client:
        url = client.current_url()
    if url is None:
        raise UsageError("no page is open: uncaged-workflow browser open ADDRESS")
    words = ["web-goal", "--prompt", goal, "--param", f"url={url}"]
    words += ["--json"] if as_json else []
    return verb.main(words, "uncaged-workflow run", standalone_mode=False)


def planned(
    client: SessionClient,
    action: str,
    values: Mapping[str, str],
    press: str | None,
    allowed: tuple[str, ...],
) -> ActionPlan:
    """Return the plan of an action of the current page."""
    from uncaged_browser.actions.plan import plan_of

    answer = performed(client, {"do": "actions", "name": action, "timeout_s": DISCOVER_S})
    return plan_of(answer, values, press=press, allowed=allowed)


def named_values(pairs: Iterable[str]) -> dict[str, str]:
    """Return the values of ``KEY=VALUE`` by key."""
    named: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"{pair!r} is not KEY=VALUE")
        if key.strip() in named:
            raise UsageError(f"{key.strip()!r} has two values")
        named[key.strip()] = value
    return named


def _label(action: PageAction) -> str:
    where = f" → {action.host}" if action.host else ""
    return f"{action.label}{where}"


def _parameters(action: PageAction) -> str:
    """Return the parameters in a few words: required ones have no question mark."""
    schema = action.parameters or {}
    properties, required = schema.get("properties"), schema.get("required")
    needed = required if isinstance(required, list) else []
    parts = []
    for name, part in (properties if isinstance(properties, Mapping) else {}).items():
        mark = "" if name in needed else "?"
        parts.append(f"{name}{mark}: {_type(part)}")
    return ", ".join(parts)


def _type(part: Mapping[str, Any]) -> str:
    choices = part.get("enum") or part.get("items", {}).get("enum")
    if choices:
        more = "|…" if len(choices) > LISTED_CHOICES else ""
        return "|".join(map(str, choices[:LISTED_CHOICES])) + more
    return str(part.get("format") or part.get("type") or "string")
