"""The verb `serve`: one server for the page, its API and the routes of all packages."""

from __future__ import annotations

import os
import tempfile
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..display import json_output
from ..display.output import Styled, note, result
from ..inputs.options import json_option
from ..inputs.stores import shared_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_bundles.storage.store import Store
    from uncaged_serve.server import Serving

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="The port; that of config.yaml (8810) if omitted; 0 chooses a free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="HOST",
    help="Listen on this address instead of 127.0.0.1; all but ::1 and localhost need --tls.",
)
@click.option("--open", "opens", is_flag=True, help="Open the page in the person's browser.")
@click.option("--read-only", is_flag=True, help="Refuse what may change something.")
@click.option(
    "--tls",
    type=(FILE, FILE),
    metavar="CERT KEY",
    help="Serve HTTPS with this certificate and key (PEM).",
)
@click.option(
    "--behind-proxy",
    metavar="ORIGIN",
    help="A reverse proxy on this machine serves it at ORIGIN, such as https://flows.example.org.",
)
@shared_option
@json_option
def command(
    *,
    port: int | None,
    host: str,
    opens: bool,
    read_only: bool,
    tls: tuple[Path, Path] | None,
    behind_proxy: str | None,
    as_json: bool,
) -> None:
    """Serve the web page, its API and the routes of all packages until Ctrl-C.

    Each request must carry the store's token, which is in a private file; `--open` hands it to the
    browser. At the end each route has 30 seconds for the requests that it has; a second Ctrl-C ends
    the server at once.
    """
    from uncaged_engine.services.listening import token_of, token_path
    from uncaged_serve.server import Place, serve

    engine = open_engine()
    token_file = token_path(engine.store)

    def ready(serving: Serving) -> None:
        for problem in serving.problems:
            note(Styled("warning: ", "yellow"), problem)
        if as_json:
            json_output.line(
                {
                    "address": serving.address,
                    "port": serving.port,
                    "tokenFile": str(token_file),
                    "routes": list(serving.routes),
                    "problems": list(serving.problems),
                }
            )
        else:
            behind = f" from port {serving.port} of {host}" if behind_proxy else ""
            result(
                f"serving {serving.address}{behind} ({', '.join(serving.routes) or 'no routes'}),"
                f" token in {token_file}; stop with Ctrl-C"
            )
        if entrance is not None:
            entrance.write_text(ENTRANCE % (serving.address, token_of(engine.store)))
            if not webbrowser.open(entrance.as_uri()):
                note(f"no browser was found; open {entrance} in one")

    place = Place(
        port=engine.config.serve_port if port is None else port,
        host=host,
        certificate=tls,
        proxy=behind_proxy,
    )
    with entrance_file(engine.store) if opens else nullcontext() as entrance:
        serve(
            engine,
            place,
            ready=ready,
            report=lambda text: note(Styled("warning: ", "yellow"), text),
            read_only=read_only,
        )


ENTRANCE = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<title>uncaged-workflow</title>
<script>location.replace("%s#token=%s")</script>
"""
"""A file hands the token to the browser: the arguments of a process can be read by other users."""


@contextmanager
def entrance_file(store: Store) -> Iterator[Path]:
    """Give the path of an empty private file, which is removed at the end."""
    handle, name = tempfile.mkstemp(prefix="open-", suffix=".html", dir=store.run)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
