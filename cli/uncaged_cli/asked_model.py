"""Model that a verb asks itself, without a thread: the named one, else the config's default."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from uncaged_bundles.errors import EnvironmentLacks

if TYPE_CHECKING:
    from uncaged_engine.settings.config import Config
    from uncaged_models.choice import ChosenModel
    from uncaged_models.questions import ModelSession


def chosen_model(config: Config, name: str | None) -> ChosenModel:
    """Return the model to ask: the named one, else the default.

    Raises:
        EnvironmentLacks: there is none.
    """
    from uncaged_models.choice import choose, choose_name

    return choose(choose_name(name, (), config, os.environ), config, os.environ)


def has_model(config: Config) -> bool:
    """Tell whether a model is configured."""
    from uncaged_models.choice import choose_name

    try:
        choose_name(None, (), config, os.environ)
    except EnvironmentLacks:
        return False
    return True


def model_session(chosen: ChosenModel) -> ModelSession:
    from uncaged_engine.door.effects import Cancel
    from uncaged_models.questions import ModelSession

    return ModelSession(chosen, os.environ, Cancel())
