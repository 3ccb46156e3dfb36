"""The verb `keys`: stores keys, lists their names and removes them; it never prints a key."""

from __future__ import annotations

import sys

import click

from ..display import json_output
from ..display.output import is_terminal, next_step, result, table, text_width
from ..display.table import render
from ..inputs.options import json_option
from ..runtime import open_engine


@click.group("keys")
def command() -> None:
    """Store keys for models and services, each in a private file. A bundle and config.yaml refer to
    a key as secret:NAME.

    The section `secrets` of config.yaml can name other sources of a secret: an environment
    variable, a file, or the system keyring.
    """


@command.command("set", short_help="Store a key; asks for its value.")
@click.argument("name")
@json_option
def set_key(name: str, as_json: bool) -> None:
    """Store the key NAME. A terminal asks for the value without echo; otherwise it is read from
    standard input.
    """
    from uncaged_engine.settings import keys

    keys.checked(name)
    asked = is_terminal(sys.stdin)
    value = (
        str(click.prompt(f"value of {name}", hide_input=True, err=True))
        if asked
        else sys.stdin.read().removeprefix("\ufeff").strip()
    )
    engine = open_engine(of_machine=True)
    path = keys.put(engine.store.root / "keys", name, value)
    if as_json:
        json_output.document({"name": name, "file": str(path)})
        return
    result(f"stored in {path}")
    next_step(f"refer to it as secret:{name}")


@command.command("list", short_help="List the names of all secrets.")
@json_option
def list_keys(as_json: bool) -> None:
    """List the names of all secrets and their sources: the store, or a source in config.yaml."""
    from uncaged_engine.settings import keys

    engine = open_engine(of_machine=True)
    kept = keys.names(engine.store.root / "keys")
    sources = {name: str(source) for name, source in engine.config.secrets.items()}
    if as_json:
        json_output.document({"keys": kept, "sources": sources})
        return
    places = dict.fromkeys(kept, "the store") | sources  # config.yaml overrides the store
    table(
        render(
            ("name", "source"),
            [[name, places[name]] for name in sorted(places)],
            width=text_width(sys.stdout),
        )
    )


@command.command("rm", short_help="Remove a key.")
@click.argument("name")
@json_option
def remove_key(name: str, as_json: bool) -> None:
    """Remove the key NAME from the store."""
    from uncaged_engine.settings import keys

    keys.remove(open_engine(of_machine=True).store.root / "keys", name)
    if as_json:
        json_output.document({"name": name, "removed": True})
        return
    result(f"removed {name}")
