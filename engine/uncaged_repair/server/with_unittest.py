"""Runner for unittest: the tests as the standard library discovers them, for interpreters without
pytest.
"""

from __future__ import annotations

import unittest
from pathlib import Path
from typing import TYPE_CHECKING

from .wire import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .outcome import Supervisor

PATTERNS = ("test*.py", "*_test.py")
NOT_LOADED = "_FailedTest"
"""Class of unittest's placeholder for a module that it could not import."""


class UnittestCases:
    """Discovered tests by their ids."""

    def __init__(self, suite: unittest.TestSuite, root: Path) -> None:
        self.root = str(root)
        self.found: dict[str, unittest.TestCase] = {case.id(): case for case in _flat(suite)}
        self.names = [
            name for name, case in self.found.items() if type(case).__name__ != NOT_LOADED
        ]

    def run(self, names: list[str], supervisor: Supervisor, quick: bool) -> Iterator[str]:  # noqa: ARG002 - as the other runners
        for name in names:
            supervisor.begin(name)
            result = ExceptionResult()
            unittest.TestSuite([self.found[name]]).run(result)
            supervisor.done(result.outcome, result.error)
            yield result.outcome


class ExceptionResult(unittest.TestResult):
    """Test result that keeps the exception itself instead of its text."""

    def __init__(self) -> None:
        super().__init__()
        self.outcome = "passed"
        self.error: BaseException | None = None

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: ARG002 - unittest's names
        self.outcome, self.error = "error", err[1]

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: ARG002 - the same
        self.outcome, self.error = "failed", err[1]

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:  # noqa: ARG002 - the same
        if err is not None:
            self.outcome, self.error = "failed", err[1]

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: ARG002 - the same
        self.outcome = "skipped"

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: ARG002 - the same
        self.outcome = "xfailed"

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: ARG002 - the same
        self.outcome = "failed"


def with_unittest(
    root: Path,
    loop: Callable[[UnittestCases], None],
    on_collected: Callable[[], None],
    errors: list[Message],
) -> None:
    """Discover tests below *root* (and in its `tests` or `test` directory, if that is no package)
    and pass them to *loop*.
    """
    loader = unittest.TestLoader()
    suite = unittest.TestSuite()
    beside = [root / name for name in ("tests", "test")]
    for place in [
        root,
        *(place for place in beside if place.is_dir() and not (place / "__init__.py").exists()),
    ]:
        for pattern in PATTERNS:
            suite.addTests(loader.discover(str(place), pattern=pattern, top_level_dir=str(place)))
    cases = UnittestCases(suite, root)
    for name, case in cases.found.items():
        if type(case).__name__ == NOT_LOADED:
            errors.append({"path": name, "message": str(getattr(case, "_exception", ""))[-2000:]})
    on_collected()
    loop(cases)


def _flat(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for part in suite:
        if isinstance(part, unittest.TestSuite):
            yield from _flat(part)
        else:
            yield part
