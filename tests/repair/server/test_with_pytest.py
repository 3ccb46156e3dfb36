"""Outcomes of pytest's test items: a quick run tells what a reported run tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from uncaged_repair.harness.baseline import Baseline
from uncaged_repair.harness.harness import Harness
from uncaged_repair.harness.host import Host, RunRequest
from uncaged_repair.harness.results import RunReport
from uncaged_repair.localise.queue import CandidateQueue, queue_of
from uncaged_repair.localise.ranking import suspicion_of
from uncaged_repair.validation.validator import Goal, PatchValidator

pytestmark = pytest.mark.slow

ITEMS = """
import unittest
import warnings

import pytest
from value_of import value


def test_plain():
    assert value() == 42


class TestMethods:
    def test_method(self):
        assert value() == 42


@pytest.mark.parametrize("wanted", [42])
def test_parametrised(wanted):
    assert value() == wanted


@pytest.fixture
def prepared():
    assert value() == 42


def test_setup_of_fixture(prepared):
    pass


@pytest.fixture
def closed():
    yield
    assert value() == 42


def test_teardown_of_fixture(closed):
    pass


@pytest.mark.anyio
async def test_async():
    assert value() == 42


@pytest.mark.xfail(strict=True)
def test_strict():
    assert value() != 42


def test_xfail_by_call():
    if value() != 42:
        pytest.xfail("not yet")


def test_xfail_by_request(request):
    request.applymarker(pytest.mark.xfail)
    assert value() == 42


def test_skip_by_call():
    if value() != 42:
        pytest.skip("not here")


def test_skip_of_unittest():
    if value() != 42:
        raise unittest.SkipTest("not here")


def test_exit():
    if value() != 42:
        pytest.exit("the end")


def test_warning():
    if value() != 42:
        warnings.warn("old", DeprecationWarning)


class Case(unittest.TestCase):
    def test_assert(self):
        self.assertEqual(value(), 42)

    def test_error(self):
        1 / (value() - 41)

    def test_skip(self):
        if value() != 42:
            self.skipTest("not here")

    @unittest.expectedFailure
    def test_expected_failure(self):
        self.assertNotEqual(value(), 42)

    def test_subtests(self):
        for number in range(3):
            with self.subTest(number=number):
                self.assertEqual(value() + number, 42 + number)

    def test_cleanup(self):
        self.addCleanup(lambda: self.assertEqual(value(), 42))


class CaseWithSetUp(unittest.TestCase):
    def setUp(self):
        self.assertEqual(value(), 42)

    def test_set_up(self):
        pass


class CaseWithTearDown(unittest.TestCase):
    def tearDown(self):
        self.assertEqual(value(), 42)

    def test_tear_down(self):
        pass

    def test_both(self):
        self.assertEqual(value(), 42)


class CaseWithSetUpClass(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        assert value() == 42

    def test_set_up_class(self):
        pass


class AsyncCase(unittest.IsolatedAsyncioTestCase):
    async def test_awaited(self):
        self.assertEqual(value(), 42)
"""
OUTCOMES = {
    "test_items.py::test_plain": ("passed", "failed"),
    "test_items.py::TestMethods::test_method": ("passed", "failed"),
    "test_items.py::test_parametrised[42]": ("passed", "failed"),
    "test_items.py::test_setup_of_fixture": ("passed", "error"),
    "test_items.py::test_teardown_of_fixture": ("passed", "error"),
    "test_items.py::test_async": ("passed", "failed"),
    "test_items.py::test_strict": ("xfailed", "failed"),
    "test_items.py::test_xfail_by_call": ("passed", "xfailed"),
    "test_items.py::test_xfail_by_request": ("passed", "xfailed"),
    "test_items.py::test_skip_by_call": ("passed", "skipped"),
    "test_items.py::test_skip_of_unittest": ("passed", "skipped"),
    "test_items.py::test_exit": ("passed", "failed"),
    "test_items.py::test_warning": ("passed", "failed"),
    "test_items.py::Case::test_assert": ("passed", "failed"),
    "test_items.py::Case::test_error": ("passed", "failed"),
    "test_items.py::Case::test_skip": ("passed", "skipped"),
    "test_items.py::Case::test_expected_failure": ("xfailed", "failed"),
    "test_items.py::Case::test_subtests": ("passed", "failed"),
    "test_items.py::Case::test_cleanup": ("passed", "failed"),
    "test_items.py::CaseWithSetUp::test_set_up": ("passed", "failed"),
    "test_items.py::CaseWithTearDown::test_tear_down": ("passed", "failed"),
    "test_items.py::CaseWithTearDown::test_both": ("passed", "failed"),
    "test_items.py::CaseWithSetUpClass::test_set_up_class": ("passed", "error"),
    "test_items.py::AsyncCase::test_awaited": ("passed", "failed"),
    "value_of.py::value_of.value": ("passed", "failed"),
}
SUBTESTS = """
def test_fixture_for_subtests(subtests):
    for number in range(2):
        with subtests.test(number=number):
            assert value() == 42
"""
VALUE = '''
def value():
    """
    >>> value()
    42
    """
    return 42
'''
SETTINGS = "[pytest]\naddopts = --doctest-modules\nfilterwarnings = error::DeprecationWarning\n"
LOADED = 'import pytest\npytest_plugins = ["anyio.pytest_plugin"]\n\n\n@pytest.fixture\ndef anyio_backend():\n    return "asyncio"\n'
CHANGED = "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    yield\n"


Open = Callable[[Mapping[str, str | bytes]], Harness]


@pytest.mark.parametrize("hook", ["", CHANGED], ids=["plain", "with a hook on reports"])
def test_a_quick_run_has_the_outcome_of_a_reported_run(open_harness: Open, hook: str) -> None:
    """Each kind of item has one outcome for right code and one for wrong code, quick or not."""
    newest = int(pytest.__version__.partition(".")[0]) >= 9
    table = OUTCOMES | (
        {"test_items.py::test_fixture_for_subtests": ("passed", "failed")} if newest else {}
    )
    harness = open_harness(
        {
            "value_of.py": VALUE,
            "test_items.py": ITEMS + (SUBTESTS if newest else ""),
            "pytest.ini": SETTINGS,
            "conftest.py": LOADED + hook.removeprefix("import pytest\n"),
        }
    )
    assert set(harness.collect().tests) == set(table)
    wrong = {"value_of.py": VALUE.replace("return 42", "return 41").encode()}
    states: tuple[Mapping[str, bytes], ...] = ({}, wrong)
    for quick in (False, True):
        found = {
            name: tuple(_outcome(harness.host, name, quick=quick, files=files) for files in states)
            for name in table
        }
        assert found == table, f"quick: {quick}"


def test_a_quick_run_formats_no_traceback(open_harness: Open) -> None:
    """A failing function and a failing TestCase are decided by the exception alone; the control, a
    reported run, formats the traceback.
    """
    harness = open_harness(
        {
            "test_area.py": "import unittest\n\n\ndef test_plain():\n    assert 1 == 2\n\n\n"
            "class AreaTest(unittest.TestCase):\n    def test_area(self):\n        self.assertEqual(1, 2)\n",
            "conftest.py": "import os\n\n\ndef pytest_collection_modifyitems(items):\n"
            "    for item in items:\n        item.repr_failure = lambda *a, **k: os._exit(3)\n",
        }
    )
    for name in harness.collect().tests:
        assert _outcome(harness.host, name, quick=True, files={}) == "failed"
        assert _outcome(harness.host, name, quick=False, files={}) == "died"


def test_a_wrong_candidate_for_a_test_case_costs_one_quick_run(open_harness: Open) -> None:
    """A unittest.TestCase decides in the first run; the related tests and the suite stay unrun."""
    harness = open_harness(
        {
            "area.py": "def area(a, b):\n    return a + b\n",
            "test_area.py": "import unittest\nfrom area import area\n\n\nclass AreaTest(unittest.TestCase):\n"
            "    def test_area(self):\n        self.assertEqual(area(3, 4), 12)\n\n"
            "    def test_small(self):\n        self.assertEqual(area(2, 2), 4)\n",
        }
    )
    baseline = harness.measure(harness.collect())
    name = "test_area.py::AreaTest::test_area"
    assert list(baseline.failing) == [name]
    runs = CountedRuns(harness.host)
    validator = PatchValidator(
        Goal(primary=name, group=(name,), baseline=baseline), least_cpu_s=1.0
    )
    wrong, right = 0, 0
    queue = _queue(harness, baseline, name)
    for number in range(60):
        candidate = queue[number]
        del runs.requests[:]
        validation = validator.validate(runs, number, candidate)
        if b"return a * b\n" in candidate.result:
            assert validation.patch is not None
            assert [request.quick for request in runs.requests] == [True, False, False]
            right += 1
        elif validation.ran:
            assert validation.patch is None
            assert [request.quick for request in runs.requests] == [True]
            wrong += 1
    assert right >= 1
    assert wrong >= 5


class CountedRuns:
    """A host that keeps the requests."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.requests: list[RunRequest] = []

    def run(self, request: RunRequest) -> RunReport:
        self.requests.append(request)
        return self._host.run(request)


def _outcome(host: Host, name: str, *, quick: bool, files: Mapping[str, bytes]) -> str:
    request = RunRequest(
        tests=[name], cpu_s=5.0, wall_s=20.0, total_s=60.0, quick=quick, files=files
    )
    return host.run(request).outcomes.get(name, "none")


def _queue(harness: Harness, baseline: Baseline, name: str) -> CandidateQueue:
    suspicion = suspicion_of(baseline, [name], harness.source, "", harness.sources)
    return queue_of(baseline, [name], suspicion, harness.source)
