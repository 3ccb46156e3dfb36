"""Settings of the person: config.yaml as checked values."""

from __future__ import annotations

from ..settings.config import NOTHING, Config, FlowSettings, McpServerSettings, SearchSettings
from ..settings.config_file import parse_config
from ..settings.editing import change_setting

__all__ = [
    "NOTHING",
    "Config",
    "FlowSettings",
    "McpServerSettings",
    "SearchSettings",
    "change_setting",
    "parse_config",
]
