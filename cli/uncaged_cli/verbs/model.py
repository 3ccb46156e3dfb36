"""The verb `model`: the models of the config, and the one that answers by default."""

from __future__ import annotations

import sys

import click
from uncaged_bundles.errors import NotFoundError
from uncaged_engine.settings.config import Config
from uncaged_engine.settings.editing import change_setting

from ..display import json_output
from ..display.output import Piece, Styled, note, result, table, text_width
from ..display.table import render
from ..inputs.options import json_option
from ..runtime import open_engine

HEADERS = ("model", "uses", "default")


@click.command()
@click.argument("name", required=False, metavar="[NAME]")
@json_option
def command(name: str | None, as_json: bool) -> None:
    """Choose the model that answers by default, one of those in config.yaml. Without NAME, list
    them.
    """
    engine = open_engine(of_machine=True)
    config = engine.config
    default = config.model if name is None else name
    if name is not None:
        change_setting(engine.store.config_path, "model", lambda now: checked(now, name))
    if as_json:
        models = [{"name": key, "use": one.use} for key, one in config.models.items()]
        json_output.document({"default": default, "models": models})
    elif name is not None:
        result(f"the model {name} answers by default")
    elif config.models:
        rows: list[list[Piece]] = [
            [Styled(key, "cyan"), one.use, "yes" if key == default else ""]
            for key, one in config.models.items()
        ]
        table(render(HEADERS, rows, width=text_width(sys.stdout)))
    else:
        note("config.yaml has no models; docs/models.md shows how to add one")


def checked(config: Config, name: str) -> str:
    """Return *name* if the config has a model of that name."""
    if name not in config.models:
        known = ", ".join(sorted(config.models)) or "none"
        raise NotFoundError(f"config.yaml has no model {name[:80]!r}; there are: {known}")
    return name
