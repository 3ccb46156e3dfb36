"""Runner for pytest: the tests as the repository's own pytest collects them."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from .wire import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .outcome import Supervisor

PLAIN = ("-p", "no:cacheprovider", "-p", "no:randomly", "-q", "--capture=no", "--tb=no")
NO_TESTS = 5
"""Exit code of pytest if it found no tests."""

_failures: list[BaseException] = []


class CollectedTests:
    """Collected tests by their node ids, which are relative to `root`."""

    def __init__(self, session: Any) -> None:
        config = session.config
        self.root = str(config.rootpath if hasattr(config, "rootpath") else config.rootdir)
        self._items: dict[str, Any] = {}
        for item in session.items:
            self._items.setdefault(item.nodeid, item)
        self.names = list(self._items)

    def run(self, names: list[str], supervisor: Supervisor, quick: bool) -> Iterator[str]:
        """Run each test and yield its outcome. quick: a single test is neither reported nor torn
        down, as its process ends anyway.
        """
        chosen = [self._items[name] for name in names]
        for item, following in zip(chosen, [*chosen[1:], None]):  # noqa: B905 - Python 3.8
            supervisor.begin(item.nodeid)
            marked = any(True for _ in item.iter_markers("xfail"))
            outcome, error = (
                _directly(item)
                if quick and len(chosen) == 1 and not marked
                else _reported(item, following)
            )
            supervisor.done(outcome, error)
            yield outcome


class CollectionPlugin:
    """Plugin that replaces pytest's loop over the tests and keeps the exception of a failing
    test.
    """

    def __init__(self, loop: Callable[[CollectedTests], None], errors: list[Message]) -> None:
        self._loop, self._errors = loop, errors
        self.reached = False

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._errors.append({"path": report.nodeid, "message": str(report.longrepr)[-2000:]})

    def pytest_runtestloop(self, session: Any) -> bool:
        self.reached = True
        self._loop(CollectedTests(session))
        return True

    def pytest_exception_interact(self, call: Any) -> None:
        _failures.append(call.excinfo.value)


def with_pytest(
    arguments: list[str],
    loop: Callable[[CollectedTests], None],
    on_collected: Callable[[], None],
    errors: list[Message],
) -> None:
    """Collect with *arguments*, add problems to *errors*, call *on_collected*, and pass the tests
    to *loop*.
    """
    import pytest

    def after_collection(items: CollectedTests) -> None:
        sys.stderr = own
        on_collected()
        loop(items)

    plugin = CollectionPlugin(after_collection, errors)
    own, output = sys.stderr, io.StringIO()
    sys.stderr = output
    try:
        code = int(pytest.main([*arguments, *PLAIN], plugins=[plugin]))
    finally:
        sys.stderr = own
    if not plugin.reached and not errors and code != NO_TESTS:
        errors.append(
            {
                "path": "",
                "message": f"pytest ended with exit code {code}: {output.getvalue().strip()[-1500:]}",
            }
        )


def version() -> str | None:
    """Return the version of this interpreter's pytest; None if it has none."""
    try:
        import pytest
    except ImportError:
        return None
    return str(pytest.__version__)


def _directly(item: Any) -> tuple[str, BaseException | None]:
    """Set the test up and call it."""
    import pytest

    try:
        item.config.hook.pytest_runtest_setup(item=item)
        item.config.hook.pytest_runtest_call(item=item)
    except pytest.skip.Exception:
        return "skipped", None
    except (Exception, pytest.fail.Exception, SystemExit) as exc:  # a failed test
        return "failed", exc
    return "passed", None


def _reported(item: Any, following: Any) -> tuple[str, BaseException | None]:
    """Run the test as pytest does, and take the outcome from its reports."""
    from _pytest.runner import runtestprotocol

    del _failures[:]
    reports = runtestprotocol(item, nextitem=following, log=False)
    if any(report.failed for report in reports):
        called = any(report.failed and report.when == "call" for report in reports)
        return ("failed" if called else "error"), (_failures[0] if _failures else None)
    if any(report.skipped for report in reports):
        return (
            "xfailed" if any(hasattr(report, "wasxfail") for report in reports) else "skipped"
        ), None
    return "passed", None
