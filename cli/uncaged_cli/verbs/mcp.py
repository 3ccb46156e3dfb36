"""`mcp` serves the flows and threads of the store to a client of the Model Context Protocol, and
prints what the client has to know.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import click

from ..display import json_output
from ..display.output import is_terminal, note
from ..inputs.completion import complete_flows
from ..inputs.options import json_option
from ..runtime import open_engine

CLIENTS = ("claude", "cursor", "vscode")


@click.group(invoke_without_command=True)
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve over HTTP on this port of 127.0.0.1; 0 takes any.",
)
@click.option(
    "--flow",
    "flows",
    multiple=True,
    metavar="FLOW",
    shell_complete=complete_flows,
    help="Offer only this flow. May be repeated.",
)
@click.pass_context
def command(context: click.Context, port: int | None, flows: tuple[str, ...]) -> None:
    """Serve the enabled flows as tools, and threads as resources, over standard input and output.

    A call of a tool runs the flow as you, with what you granted it. Over HTTP each request must
    bring the store's token: see `mcp config`.
    """
    if context.invoked_subcommand is not None:
        return
    from uncaged_tools.mcp.server import make_server
    from uncaged_tools.mcp.serving import serve_http, serve_stdio

    engine = open_engine()
    for flow in flows:
        engine.registry.resolve(flow)
    server = make_server(engine, flows or None)
    if port is None:
        if is_terminal(sys.stdin):
            note(
                "a client starts this by itself and speaks with it here: see 'uncaged-workflow mcp config CLIENT'; stop it with Ctrl-D"
            )
        serve_stdio(server)
    else:
        from uncaged_engine.listening.guard import token_of, token_path

        place = token_path(engine.store)
        serve_http(
            server,
            port,
            token_of(engine.store),
            lambda url: note(f"serving {url}, token in {place}; stop it with Ctrl-C"),
        )


@command.command("config", short_help="Print what a client needs to find this server.")
@click.argument("client", type=click.Choice(CLIENTS))
@click.option(
    "--http",
    "port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="For a server that runs with --http PORT.",
)
@json_option
def config(client: str, port: int | None, as_json: bool) -> None:
    """Print CLIENT's configuration for this server; with --http also the place of the token that
    its requests must carry.
    """
    from uncaged_tools.mcp.client_files import CLIENTS as known
    from uncaged_tools.mcp.client_files import NAME, snippet

    beside = Path(sys.executable).with_name(NAME)
    program = str(beside) if beside.exists() else shutil.which(NAME)
    words = [program, "mcp"] if program else [sys.executable, "-m", "uncaged_cli", "mcp"]
    kept = {name: os.environ[name] for name in ("UNCAGED_WORKFLOW_HOME",) if os.environ.get(name)}
    url = None if port is None else f"http://127.0.0.1:{port}/mcp"
    json_output.document(snippet(known[client], words, kept, url))
    if not as_json:
        note(f"put it into {known[client].file}")
    if not as_json and url is not None:
        from uncaged_engine.listening.guard import token_of, token_path
        from uncaged_tools.mcp.client_files import VARIABLE

        store = open_engine().store
        token_of(store)  # it is there before anybody looks for it
        path = token_path(store)
        asked = known[client].asks
        note(
            f"the token is in {path}: "
            + (
                "the client asks for it"
                if asked
                else "start the client with it in its environment:"
            )
        )
        if not asked:
            note(f'export {VARIABLE}="$(cat {shlex.quote(str(path))})"')
    if not as_json and url is None:
        note(
            "a client starts programs without your shell's variables, so add those that your flows need under env"
        )
