"""Options and settings of pytest plugins that this interpreter does not have. They are removed
after pytest has loaded the plugins and conftest files, so that what is left runs; `-p` with a
module that does not exist is passed over.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

OWN = ("-n0", "--no-cov", "-o", "required_plugins=")
"""Given in every run: no worker processes, no coverage, and no refusal to start."""
VALUED = frozenset(
    {
        "-n",
        "--numprocesses",
        "--dist",
        "--maxprocesses",
        "--cov",
        "--cov-report",
        "--cov-config",
        "--cov-fail-under",
        "--timeout",
        "--timeout-method",
        "--asyncio-mode",
        "--reruns",
        "--reruns-delay",
        "--ds",
    }
)
"""Options of plugins that may have their value as the next word, even if a file has that name."""


class AbsentPlugins:
    """Plugin that takes out what no installed plugin knows. options: the words it took out."""

    def __init__(self) -> None:
        self.options: list[str] = []

    def pytest_cmdline_parse(self, pluginmanager: Any) -> Iterator[None]:
        import pytest

        load = pluginmanager.consider_pluginarg

        def load_existing(name: str) -> None:
            try:
                load(name)
            except (ImportError, pytest.UsageError):
                if name.startswith("no:") or _exists(name):
                    raise
                self.options += ["-p", name]

        pluginmanager.consider_pluginarg = load_existing
        yield

    def pytest_load_initial_conftests(
        self, early_config: Any, parser: Any, args: list[str]
    ) -> Iterator[None]:
        yield
        for name in list(getattr(early_config, "inicfg", {})):
            if _is_unknown(early_config, name):
                parser.addini(name, "setting of a plugin that is not installed")
        _, unknown = parser.parse_known_and_unknown_args(args)
        positions = [position for position, word in enumerate(args) if _is_option(word, unknown)]
        positions += [
            position + 1
            for position in positions
            if position + 1 < len(args) and _is_value(args[position], args[position + 1])
        ]
        self.options += [
            args[position] for position in sorted(positions) if args[position] not in OWN
        ]
        args[:] = [word for position, word in enumerate(args) if position not in positions]


def _exists(name: str) -> bool:
    """Return whether there is a module of this *name*: then it is the one that fails."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _is_option(word: str, unknown: list[str]) -> bool:
    return word.startswith("-") and word in unknown


def _is_value(option: str, word: str) -> bool:
    """Return whether *word*, which follows the unknown *option*, is its value: a known option's
    is, and any word that names no test.
    """
    if word.startswith("-") or "=" in option:
        return False
    return option in VALUED or not Path(word.partition("::")[0]).exists()


def _is_unknown(config: Any, name: str) -> bool:
    try:
        config.getini(name)
    except ValueError as exc:
        return str(exc).startswith("unknown configuration value")
    except Exception:  # a known setting with a wrong value: pytest says so itself
        return False
    return False
