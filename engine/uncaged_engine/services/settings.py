"""Settings of the person: config.yaml as checked values."""

from __future__ import annotations

from ..settings.config import NOTHING, Config, FlowSettings, SearchSettings
from ..settings.config_file import parse_config

__all__ = ["NOTHING", "Config", "FlowSettings", "SearchSettings", "parse_config"]
