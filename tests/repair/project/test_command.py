"""Test commands as people write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from uncaged_bundles.errors import UsageError
from uncaged_repair.project.command import needs_plugins, parse_command


@pytest.mark.parametrize(
    ("text", "runner", "arguments"),
    [
        (None, "pytest", ()),
        ("  ", "pytest", ()),
        ("pytest -q tests/unit", "pytest", ("-q", "tests/unit")),
        ("python3.12 -m pytest -k 'a or b'", "pytest", ("-k", "a or b")),
        ("python -m unittest", "unittest", ()),
        ("python -m unittest discover", "unittest", ()),
        (
            "python -m unittest tests.test_a",
            "command",
            ("python", "-m", "unittest", "tests.test_a"),
        ),
        ("make test", "command", ("make", "test")),
        ("tox && pytest", "command", ("sh", "-c", "tox && pytest")),
    ],
)
def test_a_command_is_understood(text: str | None, runner: str, arguments: tuple[str, ...]) -> None:
    """pytest and unittest are run from inside; anything else counts by its exit code, through a
    shell only if it needs one.
    """
    command = parse_command(text, Path("/repo"))
    assert (command.runner, command.arguments) == (runner, arguments)


def test_an_interpreter_with_a_path_is_the_one_to_use() -> None:
    assert parse_command("env/bin/python -m pytest", Path("/repo")).python == Path(
        "/repo/env/bin/python"
    )
    assert parse_command("/opt/env/bin/pytest", Path("/repo")).python == Path("/opt/env/bin/python")
    assert parse_command("python -m pytest", Path("/repo")).python is None


def test_variables_before_the_command_are_set() -> None:
    command = parse_command("A=1 B='x y' pytest", Path("/repo"))
    assert (command.runner, command.variables) == ("pytest", {"A": "1", "B": "x y"})


@pytest.mark.parametrize("text", ["pytest 'open", "A=1"])
def test_a_command_that_is_none_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(UsageError, match=text.partition("'")[0].strip()):
        parse_command(text, Path("/repo"))


@pytest.mark.parametrize(
    ("path", "text", "named"),
    [
        ("pyproject.toml", '[tool.pytest.ini_options]\ntestpaths = ["tests"]\n', False),
        ("pyproject.toml", 'test = ["pytest-asyncio"]\n', True),
        ("requirements-dev.txt", "pytest\npytest-mock==3\n", True),
        ("requirements.txt", "pytest\n", False),
        ("pytest.ini", "[pytest]\nasyncio_mode = auto\n", True),
        ("conftest.py", "import pytest_twisted\n", True),
        ("conftest.py", "def pytest_configure(config): pass\n", False),
    ],
)
def test_plugins_are_loaded_only_where_the_repository_names_one(
    tmp_path: Path, path: str, text: str, named: bool
) -> None:
    (tmp_path / path).write_text(text)
    assert needs_plugins(tmp_path, ()) is named
