"""`keys` hands keys to the store and never shows one."""

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
    """Keep keys for models and services in the store, each in a file for you only. A bundle and
    config.yaml name them as secret:NAME.

    Under `secrets`, config.yaml may name other places where a secret comes from: a variable, a
    file, the system's keyring.
    """


@command.command("set", short_help="Keep a key; its value is asked for.")
@click.argument("name")
@json_option
def set_key(name: str, as_json: bool) -> None:
    """Keep the key NAME; its value is asked for without an echo, or read from standard input."""
    from uncaged_engine.settings import keys

    keys.checked(name)
    asked = is_terminal(sys.stdin)
    value = (
        str(click.prompt(f"value of {name}", hide_input=True, err=True))
        if asked
        else sys.stdin.read().removeprefix("\ufeff").strip()
    )
    engine = open_engine()
    path = keys.put(engine.store.root / "keys", name, value)
    if as_json:
        json_output.document({"name": name, "file": str(path)})
        return
    result(f"kept in {path}")
    next_step(f"name it as secret:{name}")


@command.command("list", short_help="List the names of all secrets.")
@json_option
def list_keys(as_json: bool) -> None:
    """List the names of all secrets, and where each comes from: the store, or the place that
    config.yaml names.
    """
    from uncaged_engine.settings import keys

    engine = open_engine()
    kept = keys.names(engine.store.root / "keys")
    sources = {name: str(source) for name, source in engine.config.secrets.items()}
    if as_json:
        json_output.document({"keys": kept, "sources": sources})
        return
    places = dict.fromkeys(kept, "the store") | sources  # config.yaml goes before the store
    table(
        render(
            ("name", "comes from"),
            [[name, places[name]] for name in sorted(places)],
            width=text_width(sys.stdout),
        )
    )


@command.command("rm", short_help="Forget a key.")
@click.argument("name")
@json_option
def remove_key(name: str, as_json: bool) -> None:
    """Forget the key NAME."""
    from uncaged_engine.settings import keys

    keys.remove(open_engine().store.root / "keys", name)
    if as_json:
        json_output.document({"name": name, "removed": True})
        return
    result(f"{name} is forgotten")
