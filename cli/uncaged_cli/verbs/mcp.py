"""The verb `mcp`: serves the flows and threads of the store over the Model Context Protocol, and
prints the configuration of clients.
"""

from __future__ import annotations

import os
import shlex
import sys

import click

from ..display import json_output
from ..display.output import is_terminal, note
from ..inputs.completion import complete_flows
from ..inputs.options import json_option
from ..inputs.stores import shared_option, words_of_store
from ..runtime import open_engine, own_command

CLIENTS = ("claude", "cursor", "vscode")


@click.group(invoke_without_command=True)
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve over HTTP on this port of 127.0.0.1; 0 chooses a free one.",
)
@click.option(
    "--flow",
    "flows",
    multiple=True,
    metavar="FLOW",
    shell_complete=complete_flows,
    help="Offer only this flow. May be repeated.",
)
@shared_option
@click.pass_context
def command(context: click.Context, port: int | None, flows: tuple[str, ...]) -> None:
    """Serve the enabled flows as tools, and threads as resources, over standard input and output.

    A tool call runs the flow with your rights and your grants. Over HTTP each request must carry
    the store's token: see `mcp config`.
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
                "an MCP client starts this command and uses its standard input: see 'uncaged-workflow mcp config CLIENT'; stop with Ctrl-D"
            )
        serve_stdio(server)
    else:
        from uncaged_engine.listening.guard import token_of, token_path

        place = token_path(engine.store)
        serve_http(
            server,
            port,
            token_of(engine.store),
            lambda url: note(f"serving {url}, token in {place}; stop with Ctrl-C"),
        )


@command.command("config", short_help="Print the configuration of a client.")
@click.argument("client", type=click.Choice(CLIENTS))
@click.option(
    "--http",
    "port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    help="The port of a server that was started with --http PORT.",
)
@shared_option
@json_option
def config(client: str, port: int | None, as_json: bool) -> None:
    """Print the configuration of CLIENT for this server; with --http also where the token is that
    its requests must carry.
    """
    from uncaged_tools.mcp.client_files import CLIENTS as known
    from uncaged_tools.mcp.client_files import snippet

    words = [*own_command(), "mcp", *words_of_store()]
    kept = {name: os.environ[name] for name in ("UNCAGED_WORKFLOW_HOME",) if os.environ.get(name)}
    url = None if port is None else f"http://127.0.0.1:{port}/mcp"
    json_output.document(snippet(known[client], words, kept, url))
    if not as_json:
        note(f"add this to {known[client].file}")
    if not as_json and url is not None:
        from uncaged_bundles.storage.store import Store
        from uncaged_engine.listening.guard import token_of, token_path
        from uncaged_tools.mcp.client_files import VARIABLE

        store = Store.open()
        token_of(store)  # create the token file
        path = token_path(store)
        asked = known[client].asks
        note(
            f"the token is in {path}: "
            + (
                "the client will ask for it"
                if asked
                else "start the client with the token in its environment:"
            )
        )
        if not asked:
            note(f'export {VARIABLE}="$(cat {shlex.quote(str(path))})"')
    if not as_json and url is None:
        note(
            "clients start programs without the variables of your shell; add those that your flows need under env"
        )
