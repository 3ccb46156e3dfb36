"""Configuration of the test runner: interpreter, command, paths and variables. It is the same for
every host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .command import TestCommand
from .interpreter import ProjectInterpreter

PASSED_ON = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerConfig:
    """Configuration of the test runner.

    inside: the working directory, relative to the top. origins: directories that installations may
    name instead of the copy. read: further paths that the tests may read. environment: the
    caller's; variables: what the interpreter needs besides. bytecode: a directory with that
    of modules.
    """

    interpreter: ProjectInterpreter
    command: TestCommand
    inside: str
    origins: tuple[Path, ...]
    sources: tuple[str, ...]
    read: tuple[Path, ...]
    environment: Mapping[str, str]
    variables: Mapping[str, str]
    plugins: bool
    bytecode: Path | None = None

    def variables_for_tests(self) -> dict[str, str]:
        """Return the environment of the tests, without home and temporary directory."""
        binaries = self.interpreter.executable.parent
        return {
            "LANG": "C.UTF-8",
            **{name: value for name, value in self.environment.items() if name in PASSED_ON},
            "PATH": f"{binaries}:/usr/local/bin:/usr/bin:/bin",
            **(
                {"VIRTUAL_ENV": str(binaries.parent)}
                if (binaries.parent / "pyvenv.cfg").is_file()
                else {}
            ),
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            **({} if self.plugins else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}),
            **self.variables,
            **self.command.variables,
        }

    def options_for_single_tests(self) -> list[str]:
        """Return the options of the person's pytest command that hold for a single test as well: no
        paths and no selection of tests.
        """
        kept: list[str] = []
        words = iter(self.command.arguments)
        for word in words:
            if word in ("-k", "-m", "--deselect", "--ignore"):
                next(words, None)
            elif word in ("-p", "-c", "-o", "-W", "--rootdir", "--confcutdir", "--import-mode"):
                kept += [word, next(words, "")]
            elif word.startswith("-"):
                kept.append(word)
        return kept
