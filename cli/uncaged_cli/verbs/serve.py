"""The verb `serve`: one server on loopback for the routes of all packages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..display import json_output
from ..display.output import Styled, note, result
from ..inputs.options import json_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_serve.server import Serving


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="The port of 127.0.0.1; that of config.yaml (8810) if omitted; 0 chooses a free one.",
)
@json_option
def command(port: int | None, as_json: bool) -> None:
    """Serve the routes of all packages on one port of 127.0.0.1 until Ctrl-C.

    Each request must carry the store's token, which is in a private file. At the end each route
    has 30 seconds for the requests that it has; a second Ctrl-C ends the server at once.
    """
    from uncaged_engine.services.listening import token_path
    from uncaged_serve.server import serve

    engine = open_engine()
    token_file = token_path(engine.store)

    def ready(serving: Serving) -> None:
        for problem in serving.problems:
            note(Styled("warning: ", "yellow"), problem)
        if as_json:
            json_output.line(
                {
                    "address": serving.address,
                    "tokenFile": str(token_file),
                    "routes": list(serving.routes),
                    "problems": list(serving.problems),
                }
            )
            return
        result(
            f"serving {serving.address} ({', '.join(serving.routes) or 'no routes'}),"
            f" token in {token_file}; stop with Ctrl-C"
        )

    chosen = engine.config.serve_port if port is None else port
    serve(
        engine, chosen, ready=ready, report=lambda text: note(Styled("warning: ", "yellow"), text)
    )
