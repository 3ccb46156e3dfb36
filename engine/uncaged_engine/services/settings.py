"""Settings of the person: config.yaml as checked values. What checks them is loaded when there are
any.
"""

from __future__ import annotations

from ..settings.config import (
    NOTHING,
    TEXT_PLACE,
    BrowserPart,
    BrowserSettings,
    Config,
    FlowSettings,
    McpServerSettings,
    Resolver,
    SearchSettings,
)
from ..settings.editing import change_setting
from ..settings.loading import load

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
    "load",
]
