"""Settings of the person: config.yaml as checked values."""

from __future__ import annotations

from ..settings.config import (
    NOTHING,
    BrowserPart,
    BrowserSettings,
    Config,
    FlowSettings,
    McpServerSettings,
    Resolver,
    SearchSettings,
)
from ..settings.config_file import TEXT_PLACE, parse_config
from ..settings.editing import change_setting

__all__ = [
    "NOTHING",
    "TEXT_PLACE",
    "BrowserPart",
    "BrowserSettings",
    "Config",
    "FlowSettings",
    "McpServerSettings",
    "Resolver",
    "SearchSettings",
    "change_setting",
    "parse_config",
]
