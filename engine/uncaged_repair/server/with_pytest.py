"""Runner for pytest: the tests as the repository's own pytest collects them."""

from __future__ import annotations

import io
import sys
from functools import partial
from typing import TYPE_CHECKING
from unittest import SkipTest

from .absent_plugins import OWN, AbsentPlugins
from .bytecode import keep_rewritten_modules
from .wire import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Literal

    from .outcome import Supervisor

    Phase = Literal["setup", "call", "teardown"]
    Result = tuple[str, BaseException | None]

PLAIN = ("-p", "no:cacheprovider", "-p", "no:randomly", "-q", "--capture=no", "--tb=no")
PHASES: tuple[Phase, ...] = ("setup", "call", "teardown")
NO_TESTS = 5
"""Exit code of pytest if it found no tests."""


class CollectedTests:
    """Collected tests by their node ids, which are relative to `root`."""

    def __init__(self, session: Any, protocol: Protocol) -> None:
        config = session.config
        self.root = str(config.rootpath if hasattr(config, "rootpath") else config.rootdir)
        self.unknown_options: list[str] = []
        self._protocol = protocol
        self._items: dict[str, Any] = {}
        for item in session.items:
            self._items.setdefault(item.nodeid, item)
        self.names = list(self._items)

    def run(self, names: list[str], supervisor: Supervisor, quick: bool) -> Iterator[str]:
        """Run each test and yield its outcome. quick: a single test that fails is neither reported
        nor torn down, as its process ends anyway.
        """
        chosen = [self._items[name] for name in names]
        for item, following in zip(chosen, [*chosen[1:], None]):  # noqa: B905 - Python 3.8
            supervisor.begin(item.nodeid)
            outcome, error = self._protocol.run(item, following, quick and len(chosen) == 1)
            supervisor.done(outcome, error)
            yield outcome


class Protocol:
    """Plugin that runs one test through all hooks and keeps its reports and its exception."""

    def __init__(self) -> None:
        self._quick = False
        self._direct: Result | None = None
        self._reports: list[Any] = []
        self._errors: list[BaseException] = []

    def run(self, item: Any, following: Any, quick: bool) -> Result:
        import pytest

        self._quick, self._direct, self._reports, self._errors = quick, None, [], []
        try:
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        except pytest.exit.Exception as exc:  # a test that ends the whole run fails
            return "failed", exc
        error = self._errors[0] if self._errors else None
        if self._direct is None:
            return _outcome(self._reports), error
        # only a subtest is reported in a quick run
        failed = self._direct[0] == "passed" and any(report.failed for report in self._reports)
        return ("failed", error) if failed else self._direct

    def pytest_runtest_protocol(self, item: Any) -> bool | None:
        """Run a quick test here; pytest runs any other."""
        if not self._quick:
            return None
        self._direct = _directly(item)
        return True

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._reports.append(report)

    def pytest_exception_interact(self, call: Any) -> None:
        self._errors.append(call.excinfo.value)


class CollectionPlugin:
    """Plugin that replaces pytest's loop over the tests."""

    def __init__(self, loop: Callable[[CollectedTests], None], errors: list[Message]) -> None:
        self._loop, self._errors = loop, errors
        self.protocol = Protocol()
        self.reached = False

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._errors.append({"path": report.nodeid, "message": str(report.longrepr)[-2000:]})

    def pytest_runtestloop(self, session: Any) -> bool:
        self.reached = True
        self._loop(CollectedTests(session, self.protocol))
        return True


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
        items.unknown_options = absent.options
        on_collected()
        loop(items)

    plugin, absent = CollectionPlugin(after_collection, errors), AbsentPlugins()
    pytest.hookimpl(tryfirst=True)(Protocol.pytest_runtest_protocol)
    first = pytest.hookimpl(tryfirst=True, hookwrapper=True)
    first(AbsentPlugins.pytest_cmdline_parse)
    first(AbsentPlugins.pytest_load_initial_conftests)
    keep_rewritten_modules()
    own, output = sys.stderr, io.StringIO()
    sys.stderr = output
    try:
        # no plugin of the repository may start workers: these options come last
        words = [*arguments, *PLAIN, *OWN]
        code = int(pytest.main(words, plugins=[plugin, plugin.protocol, absent]))
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


def _directly(item: Any) -> Result:
    """Run the phases of a test up to the first one that fails. An exception that says enough is not
    reported: a report formats the traceback, which takes longer than most tests.
    """
    import pytest
    from _pytest.runner import CallInfo

    reraise = (pytest.exit.Exception, KeyboardInterrupt)
    outcome = "passed"
    for phase in PHASES:
        arguments = {"item": item, "nextitem": None} if phase == "teardown" else {"item": item}
        if phase == "call" and outcome != "passed":
            continue
        hook = getattr(item.config.hook, f"pytest_runtest_{phase}")
        call = CallInfo.from_call(partial(hook, **arguments), when=phase, reraise=reraise)
        found = _outcome_of_phase(item, call)
        if found in ("failed", "error"):
            return found, None if call.excinfo is None else call.excinfo.value
        outcome = outcome if found == "passed" else found
    return outcome, None


def _outcome_of_phase(item: Any, call: Any) -> str:
    """Return the outcome that a report of *call* would have."""
    import pytest

    # pytest keeps the exceptions of a unittest.TestCase here, and makes them those of its reports
    kept = item.__dict__.get("_excinfo")
    if not (kept or call.excinfo) or _reports_are_changed(item):
        return _outcome([item.ihook.pytest_runtest_makereport(item=item, call=call)])
    if kept:
        call.excinfo = kept.pop(0)
    error = call.excinfo.value
    if isinstance(error, (pytest.skip.Exception, SkipTest)):
        return "skipped"
    if isinstance(error, pytest.xfail.Exception):
        return "xfailed"
    return "failed" if call.when == "call" else "error"


def _reports_are_changed(item: Any) -> bool:
    """Return whether a mark or a plugin may give a failing test another outcome."""
    hooks = item.ihook.pytest_runtest_makereport.get_hookimpls()
    modules = [getattr(hook.function, "__module__", "") for hook in hooks]
    changed = any(not module.startswith("_pytest.") for module in modules)
    return changed or any(True for _ in item.iter_markers("xfail"))


def _outcome(reports: list[Any]) -> str:
    """Return the outcome of a test with these *reports*, which may be those of subtests, too."""
    failed = [report for report in reports if report.failed]
    if failed or not reports:
        return "failed" if any(report.when == "call" for report in failed) else "error"
    # the report of a subtest has a context
    skipped = [report for report in reports if report.skipped and not hasattr(report, "context")]
    if skipped:
        return "xfailed" if any(hasattr(report, "wasxfail") for report in skipped) else "skipped"
    return "passed"
