"""Distributions with routes, installed in a temporary directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from testbed.serving import install_routes

Distribution = Callable[[str, Mapping[str, str]], Path]


@pytest.fixture
def distribution(tmp_path: Path) -> Distribution:
    """Install a distribution with one module and these routes; return the directory for the module
    path.
    """
    return lambda module, routes: install_routes(tmp_path / "site", module, routes)
