"""Parser of test commands: pytest with arguments, unittest's discovery, or any program with an exit
code.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from uncaged_bundles.errors import UsageError

Runner = Literal["pytest", "unittest", "command"]
SHELL = re.compile(r"[|&;<>$`*?()\n]")
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
PYTHON = re.compile(r"(python|python\d(\.\d+)?|pypy\d?)$")
PLUGIN = re.compile(
    r"\bpytest-(?!cache\b|current\b)[a-z][\w-]*|^\s*(?:import|from)\s+pytest_\w+|\banyio_mode\b|\basyncio_mode\b",
    re.MULTILINE,
)
NAMING_FILES = (
    "pyproject.toml",
    "pytest.ini",
    "setup.cfg",
    "tox.ini",
    "setup.py",
    "Pipfile",
    "conftest.py",
    "tests/conftest.py",
    "test/conftest.py",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCommand:
    """Parsed test command. arguments: after `pytest`, or the whole argv. python: the interpreter,
    if the command has its path.
    """

    __test__ = False  # pytest would collect it by its name

    runner: Runner
    arguments: tuple[str, ...] = ()
    python: Path | None = None
    variables: dict[str, str] = field(default_factory=dict)
    text: str


def parse_command(text: str | None, directory: Path) -> TestCommand:
    """Parse *text*; without one, choose pytest.

    Raises:
        UsageError: the words cannot be split.
    """
    if text is None or not text.strip():
        return TestCommand(runner="pytest", text="python -m pytest")
    try:
        words = shlex.split(text)
    except ValueError as exc:
        raise UsageError(f"the test command {text!r} cannot be read: {exc}") from exc
    variables: dict[str, str] = {}
    while words and ASSIGNMENT.match(words[0]):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    if not words:
        raise UsageError(f"the test command {text!r} names no program")
    program = Path(words[0])
    found = directory / program if "/" in words[0] else None
    if not SHELL.search(text):
        if program.name in ("pytest", "py.test"):
            return TestCommand(
                runner="pytest",
                arguments=tuple(words[1:]),
                python=found and found.parent / "python",
                variables=variables,
                text=text,
            )
        if PYTHON.match(program.name) and words[1:3] == ["-m", "pytest"]:
            return TestCommand(
                runner="pytest",
                arguments=tuple(words[3:]),
                python=found,
                variables=variables,
                text=text,
            )
        if PYTHON.match(program.name) and words[1:] in (
            ["-m", "unittest"],
            ["-m", "unittest", "discover"],
        ):
            return TestCommand(runner="unittest", python=found, variables=variables, text=text)
        return TestCommand(runner="command", arguments=tuple(words), variables=variables, text=text)
    return TestCommand(runner="command", arguments=("sh", "-c", text), text=text)


def needs_plugins(top: Path, arguments: tuple[str, ...]) -> bool:
    """Return whether the repository's configuration or the arguments name a pytest plugin."""
    return any(
        argument.startswith(("--cov", "-n", "--asyncio", "--timeout")) for argument in arguments
    ) or bool(PLUGIN.search(_texts(top)))


def _texts(top: Path) -> str:
    texts = []
    for path in (
        *(top / name for name in NAMING_FILES),
        *sorted(top.glob("*requirements*.txt")),
        *sorted(top.glob("requirements/*.txt")),
    ):
        try:
            texts.append(path.read_text(errors="replace")[:200_000])
        except OSError:
            continue
    return "\n".join(texts)
