"""Options and settings of pytest plugins that are not installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

import pytest
from uncaged_repair.harness.harness import Harness

pytestmark = pytest.mark.slow

TESTS = 'import os\n\n\ndef test_alone():\n    assert "PYTEST_XDIST_WORKER" not in os.environ\n'
PLUGIN = """
import pytest


def pytest_addoption(parser):
    parser.addoption("--mini", default="small")


@pytest.fixture
def size(request):
    return request.config.getoption("--mini")
"""
DEFINED = """
def pytest_addoption(parser):
    parser.addoption("--here")
    parser.addini("place", "where", type="bool")
"""


Open = Callable[..., Harness]


def test_the_options_of_this_interpreters_plugins_are_known() -> None:
    """The tests below rely on xdist and timeout, and on the absence of cov and asyncio."""
    names = {entry.name for entry in entry_points(group="pytest11")}
    assert {"xdist", "timeout"} <= names
    assert not {"pytest_cov", "asyncio"} & names


@pytest.mark.parametrize(
    ("path", "head"),
    [("pytest.ini", "[pytest]"), ("setup.cfg", "[tool:pytest]"), ("tox.ini", "[pytest]")],
)
def test_options_of_absent_plugins_are_left_out(open_harness: Open, path: str, head: str) -> None:
    """Only the words that no plugin knows go, with their values; the runner's label names them."""
    settings = (
        f"{head}\naddopts = -n 2 --dist loadscope --cov src --cov-report term --timeout 7 --strict-config\n"
        "asyncio_mode = auto\ntimeout = 9\nfilterwarnings = error\nrequired_plugins = pytest-cov\n"
        "testpaths = tests\n"
    )
    harness = open_harness({path: settings, "tests/test_a.py": TESTS, "src/a.py": ""})
    found = harness.collect()
    assert (found.tests, found.errors) == (("tests/test_a.py::test_alone",), ())
    assert found.unknown_options == ("--cov", "src", "--cov-report", "term")
    assert harness.runner.endswith(
        " without `--cov src --cov-report term`, which no installed plugin knows"
    )
    assert harness.measure(found).outcomes == {"tests/test_a.py::test_alone": "passed"}


def test_options_of_absent_plugins_in_pyproject_are_left_out(open_harness: Open) -> None:
    """An option with its value in one word goes alone: the word after it is a path of tests."""
    harness = open_harness(
        {
            "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--cov=src --mypy checks -x"\n',
            "checks/test_a.py": TESTS,
            "test_b.py": TESTS,
        }
    )
    found = harness.collect()
    assert found.tests == ("checks/test_a.py::test_alone",)
    assert found.unknown_options == ("--cov=src", "--mypy")


def test_a_plugin_module_that_does_not_exist_is_passed_over(open_harness: Open) -> None:
    """`-p` with an absent module is left out in both spellings; an existing module is loaded, and
    one that cannot be imported is an error.
    """
    files = {
        "mine.py": "def pytest_addoption(parser):\n    parser.addoption('--mini')\n",
        "bad.py": "import no_such_thing\n",
        "test_a.py": TESTS,
    }
    options = "-p no_such_plugin -pno.such.plugin -p mine -p no:doctest --mini=3"
    harness = open_harness({**files, "pytest.ini": f"[pytest]\naddopts = {options}\n"})
    found = harness.collect()
    assert (found.tests, found.errors) == (("test_a.py::test_alone",), ())
    assert found.unknown_options == ("-p", "no_such_plugin", "-p", "no.such.plugin")
    assert harness.measure(found).outcomes == {"test_a.py::test_alone": "passed"}
    broken = open_harness({**files, "pytest.ini": "[pytest]\naddopts = -p bad\n"}).collect()
    assert not broken.tests
    assert any("no_such_thing" in message for _, message in broken.errors)


def test_workers_of_the_persons_command_are_not_started(open_harness: Open) -> None:
    """A command with `-n 4` runs its tests in one process."""
    harness = open_harness({"test_a.py": TESTS}, "pytest -n 4 --no-such-option")
    found = harness.collect()
    assert found.unknown_options == ("--no-such-option",)
    assert harness.measure(found).outcomes == {"test_a.py::test_alone": "passed"}


def test_an_installed_plugin_that_no_text_names_is_loaded(open_harness: Open) -> None:
    """An option of a plugin that the interpreter has is kept, and the plugin gets its value."""
    harness = open_harness(
        {
            "mini_plugin.py": PLUGIN,
            "mini-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: mini\nVersion: 1.0\n",
            "mini-1.0.dist-info/entry_points.txt": "[pytest11]\nmini = mini_plugin\n",
            "setup.cfg": "[tool:pytest]\naddopts = --mini large\n",
            "test_a.py": "def test_size(size):\n    assert size == 'large'\n",
        }
    )
    found = harness.collect()
    assert found.unknown_options == ()
    assert harness.measure(found).outcomes == {"test_a.py::test_size": "passed"}


def test_a_conftest_keeps_its_own_options_and_settings(open_harness: Open) -> None:
    """Options and settings that a conftest file defines are no plugin's: nothing is left out."""
    harness = open_harness(
        {
            "conftest.py": DEFINED,
            "pytest.ini": "[pytest]\naddopts = --here=there --strict-config\nplace = true\n",
            "test_a.py": "def test_place(request):\n    assert request.config.getini('place') is True\n"
            "    assert request.config.getoption('--here') == 'there'\n",
        }
    )
    found = harness.collect()
    assert found.unknown_options == ()
    assert harness.measure(found).outcomes == {"test_a.py::test_place": "passed"}
