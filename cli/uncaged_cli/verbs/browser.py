"""The verb `browser`: starts and stops browser sessions, and uses their tabs by hand."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import click
from uncaged_browser.addresses import address_of, is_name
from uncaged_browser.browsers.extension import EXTENSION
from uncaged_browser.session.address import checked_name
from uncaged_browser.session.client import SessionClient, SessionGone
from uncaged_bundles.errors import UsageError

from ..browsing import actions, asking, knowledge, lookups, switches
from ..browsing.session import (
    opened_session,
    performed,
    reported,
    running_session,
    session_option,
)
from ..display import json_output
from ..display.output import Piece, Styled, next_step, note, result, table, text_width
from ..display.table import render
from ..inputs.options import json_option
from ..runtime import open_engine

PARTS = (
    lookups.search,
    switches.switch_resolvers,
    knowledge.command,
    asking.ask,
    asking.extract,
    actions.command,
    switches.switch_parts,
)
HEADERS = ("tab", "title", "address", "")


@click.group(no_args_is_help=True)
def command() -> None:
    """Start and stop browser sessions, and use their tabs.

    A browser session is a browser in a process of its own. Flows start it when they need it; it
    leaves ten minutes after its last use. Its tabs and logins stay when a flow or a worker ends.
    """


@command.command("launch", short_help="Start a browser session.")
@click.option("--shown", is_flag=True, help="With a window. Without it, the browser is headless.")
@session_option
@json_option
def launch(name: str, shown: bool, as_json: bool) -> None:
    """Start a browser session; one that runs stays as it is."""
    store = open_engine(of_machine=True).store
    running = SessionClient.connect(store, checked_name(name))
    with running or SessionClient.open(store, name, shown=shown):
        pass
    if as_json:
        json_output.document({"session": name, "started": running is None})
    else:
        result(f"browser session {name} " + ("started" if running is None else "runs already"))
        next_step("uncaged-workflow browser open example.com")


@command.command("status", short_help="Show whether a session runs, its tabs, and its threads.")
@session_option
@json_option
def status(name: str, as_json: bool) -> None:
    """Show whether a session runs, how many tabs it has, and which threads use it."""
    client = SessionClient.connect(open_engine(of_machine=True).store, checked_name(name))
    if client is None:
        if as_json:
            json_output.document({"session": name, "running": False, "tabs": [], "threads": []})
        else:
            note(f"browser session {name} does not run")
            next_step("uncaged-workflow browser launch")
        return
    with client, reported():
        tabs = performed(client, {"do": "tabs"})
        found = client.status()
    threads = found["threads"]
    if as_json:
        json_output.document({"session": name, "running": True, "tabs": tabs, "threads": threads})
        return
    result(
        f"browser session {name} runs, {len(tabs)} tab{'' if len(tabs) == 1 else 's'},"
        f" {len(threads)} thread{'' if len(threads) == 1 else 's'}"
    )
    _show_tabs(tabs)
    if problem := found["external"].get("problem"):
        note(Styled("warning: ", "yellow"), problem)


@command.command("open", short_help="Open an address, or the page that a name means.")
@click.argument("site", metavar="ADDRESS|NAME")
@session_option
@json_option
def open_site(site: str, name: str, as_json: bool) -> None:
    """Open an address in a new tab of a session, which is started if it does not run.

    A text that is no address is the name of a page, which the resolvers look for: see `browser
    resolver`.
    """
    engine = open_engine(of_machine=True)
    try:
        url = address_of(site)
    except UsageError:
        if not is_name(site):
            raise
        tab = lookups.opened_by_name(engine, name, site)
    else:
        with opened_session(name) as client:
            tab = performed(client, {"do": "open", "url": url, "timeout_s": 30})
    if as_json:
        json_output.document(tab)
    else:
        found = f", found by {tab['resolver']}" if "resolver" in tab else ""
        result(f"tab {tab['tab']}: {tab['title'] or tab['url']}{found}")
        if "notIndexed" in tab:
            note(f"not indexed: {tab['notIndexed']}")


@command.command("tabs", short_help="List the tabs of a session.")
@session_option
@json_option
def list_tabs(name: str, as_json: bool) -> None:
    """List the tabs of a session."""
    with running_session(name) as client:
        tabs = performed(client, {"do": "tabs"})
    if as_json:
        json_output.document(tabs)
    else:
        _show_tabs(tabs)


@command.command("close", short_help="Close a tab of a session.")
@click.argument("tab", required=False, metavar="[TAB]")
@session_option
@json_option
def close_tab(tab: str | None, name: str, as_json: bool) -> None:
    """Close a tab by its number; without it, the current one."""
    with running_session(name) as client:
        closed = performed(client, {"do": "close", **({} if tab is None else {"tab": tab})})
    if as_json:
        json_output.document(closed)
    else:
        result(f"closed tab {closed['tab']}; {closed['open']} are open")


@command.command("external", short_help="Use your own browser, or stop using it.")
@click.argument("state", type=click.Choice(["on", "off"]), metavar="on | off")
@session_option
@json_option
def switch_external(state: str, name: str, as_json: bool) -> None:
    """Use your own browser through its extension, or stop using it.

    `on` starts the session if it does not run, and prints a pairing code to type into the
    extension; an extension that is paired connects by itself. Until `off`, the session does not
    leave, and calls that use its tabs use yours.
    """
    store = open_engine(of_machine=True).store
    running = SessionClient.connect(store, checked_name(name))
    if running is None and state == "off":
        external: dict[str, Any] = {"on": False}
    else:
        with running or SessionClient.open(store, name) as client, reported():
            external = client.external(on=state == "on")
    if as_json:
        json_output.document({"session": name, **external})
    elif not external["on"]:
        result("your browser is not used")
    else:
        result(f"pairing code {external['code']} for the extension, on port {external['port']}")
        note("the code pairs one browser within ten minutes; the extension is in " + str(EXTENSION))


@command.command("stop", short_help="End a session with its browser.")
@session_option
@json_option
def stop(name: str, as_json: bool) -> None:
    """End a session with its browser. Its profile, with logins and history, stays."""
    client = SessionClient.connect(open_engine(of_machine=True).store, checked_name(name))
    if client is not None:
        with client, reported(), suppress(SessionGone):
            client.stop()
    if as_json:
        json_output.document({"session": name, "stopped": client is not None})
    else:
        result(f"browser session {name} " + ("is ending" if client else "does not run"))


for part in PARTS:
    command.add_command(part)


def _show_tabs(tabs: list[dict[str, Any]]) -> None:
    rows: list[list[Piece]] = [
        [
            Styled(str(tab["tab"]), "cyan"),
            str(tab["title"]),
            str(tab["url"]),
            "current" if tab["current"] else "",
        ]
        for tab in tabs
    ]
    if rows:
        table(render(HEADERS, rows, width=text_width(sys.stdout)))
