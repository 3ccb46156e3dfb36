"""Choice of an effect's model: by the bundle's body, its policy, and the person's config, in that
order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import cast

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_engine.services import secrets
from uncaged_engine.services.settings import Config

from .settings import KEY_VARIABLES, WIRES, ModelSettings, Wire, read_settings, with_key


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenModel:
    """Model with its checked settings. name: its name in config. known: the secrets in its
    settings, value to name.
    """

    name: str
    settings: ModelSettings
    known: Mapping[str, str]


def choose_name(
    asked: str | None, allowed: Sequence[str], config: Config, environment: Mapping[str, str]
) -> str:
    """Return the name of the requested model, else of the config's default, the only one, or the
    one whose key is set. Only allowed ones count.

    Raises:
        EnvironmentLacks: there is no such model.
    """
    if asked is not None:
        return asked
    by_key = [wire for wire in WIRES if environment.get(KEY_VARIABLES[wire])]
    candidates = [
        *([config.model] if config.model else []),
        *allowed,
        *(config.models if len(config.models) == 1 else ()),
        *by_key,
    ]
    for name in map(str, candidates):
        if not allowed or name in allowed:
            return name
    raise EnvironmentLacks(
        "no model is configured",
        remedy="add one under models in config.yaml and name it with `model: NAME`, or set ANTHROPIC_API_KEY",
    )


def choose(name: str, config: Config, environment: Mapping[str, str]) -> ChosenModel:
    """Return the settings of the model *name*: those of config, or the defaults of an API.

    Raises:
        EnvironmentLacks: the model or its key is missing.
    """
    entry = config.models.get(name)
    if entry is None and name not in WIRES:
        near = get_close_matches(name, config.models, n=3) or sorted(config.models) or ["none"]
        raise EnvironmentLacks(
            f"config.yaml has no model {name!r} (it has: {', '.join(near)})",
            remedy="add it under models",
        )
    wire = cast("Wire", entry.use if entry is not None else name)
    settings, known = secrets.resolve(
        with_key(wire, entry.settings if entry is not None else {}), config, environment
    )
    carried = config.for_agents(environment)
    return ChosenModel(
        name=name,
        settings=read_settings(wire, cast("Mapping[str, object]", settings), carried),
        known=known,
    )
