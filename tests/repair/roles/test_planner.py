"""The planner on real repositories, in the sandbox."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Protocol

import pytest
from uncaged_bundles.errors import EnvironmentLacks
from uncaged_repair.task import PersonNeeded, RepairLimits

pytestmark = pytest.mark.slow


class Played(Protocol):
    @property
    def text(self) -> str: ...
    @property
    def meta(self) -> Mapping[str, object]: ...


class Repository(Protocol):
    said: list[str]

    def play(
        self,
        role: str,
        *,
        test_command: str | None = None,
        limits: RepairLimits = ...,
        inside: str = "",
        text: str = "",
        attended: bool = False,
        reply: object = None,
    ) -> Played: ...


Make = Callable[[Mapping[str, str | bytes]], Repository]
CODE = "def twice(x):\n    return x + 2\n"
TESTS = "from code_of import twice\n\n\ndef test_two():\n    assert twice(2) == 4\n\n\ndef test_five():\n    assert twice(5) == 10\n"


def reason(
    made: Repository, test_command: str | None = None, limits: RepairLimits | None = None
) -> str:
    played = made.play(
        "planner",
        test_command=test_command,
        limits=limits or RepairLimits(budget_s=60.0, test_s=1.0),
    )
    assert played.meta["status"] == "aborted"
    return str(played.meta["reason"])


def test_failing_tests_become_phases_with_suspicious_lines(make_repository: Make) -> None:
    """The answer says what it is, how tests were run, which fail, and where the cause is
    suspected.
    """
    played = make_repository({"code_of.py": CODE, "test_code.py": TESTS}).play("planner")
    assert played.text.startswith(
        "built-in repair: no model; it searches small edits until the repository's own failing test passes\n"
    )
    assert "`python -m pytest`" in played.text
    assert "1 of 2 tests fail" in played.text
    assert played.meta["status"] == "planned"
    phases = played.meta["phases"]
    assert isinstance(phases, list)
    assert len(phases) == 1
    assert "test_code.py::test_five" in phases[0]["acceptance"]
    assert "code_of.py:2 (1.00)" in phases[0]["description"]
    assert "AssertionError" in phases[0]["description"]


def test_independent_causes_are_phases_of_their_own(make_repository: Make) -> None:
    code = "def twice(x):\n    return x + 2\n\n\ndef half(x):\n    return x / 3\n"
    tests = (
        "from code_of import half, twice\n\n\ndef test_twice():\n    assert twice(5) == 10\n"
        "\n\ndef test_half():\n    assert half(4) == 2\n"
    )
    phases = (
        make_repository({"code_of.py": code, "test_code.py": tests}).play("planner").meta["phases"]
    )
    assert isinstance(phases, list)
    assert [phase["name"] for phase in phases] == ["repair-1", "repair-2"]


UNRELATED = "Passwords with an umlaut are refused at the login"
TWO_SUBJECTS = {
    "prices.py": "def gross(net):\n    return net - net * 0.2\n",
    "pages.py": "def page(rows, number):\n    return rows[number * 3 : number * 3 + 3]\n",
    "test_prices.py": "from prices import gross\n\n\ndef test_gross_adds_the_tax():\n    assert gross(100) == 120\n",
    "test_pages.py": "from pages import page\n\n\ndef test_the_first_page():\n    assert page([1, 2, 3, 4], 1) == [1, 2, 3]\n",
}


def test_only_tests_that_belong_to_the_prompt_are_planned(make_repository: Make) -> None:
    """The other failing tests are listed and left alone."""
    played = make_repository(TWO_SUBJECTS).play(
        "planner", text="The first page of a list shows the wrong rows"
    )
    phases = played.meta["phases"]
    assert isinstance(phases, list)
    assert ["test_the_first_page" in phase["acceptance"] for phase in phases] == [True]
    assert played.meta["leftAlone"] == ["test_prices.py::test_gross_adds_the_tax"]
    assert "the prompt shares the words" in played.text
    assert "Left alone, because the prompt does not ask for them: test_prices.py" in played.text


def test_the_id_of_a_test_leaves_others_of_its_file_alone(make_repository: Make) -> None:
    """Only the named test is planned, also where another one has the same cause."""
    tests = (
        "import unittest\nfrom code_of import twice\n\n\nclass TestTwice(unittest.TestCase):\n"
        "    def test_five(self):\n        self.assertEqual(twice(5), 10)\n\n"
        "    def test_odd(self):\n        self.assertEqual(twice(5), 11)\n"
    )
    made = make_repository({"code_of.py": CODE, "test_code.py": tests})
    named = "test_code.py::TestTwice::test_five"
    played = made.play("planner", text=f"make the tests pass: {named}")
    phases = played.meta["phases"]
    assert isinstance(phases, list)
    assert [named in phase["acceptance"] for phase in phases] == [True]
    assert "test_odd" not in phases[0]["acceptance"]
    assert played.meta["leftAlone"] == ["test_code.py::TestTwice::test_odd"]
    assert f"the prompt names the test {named}" in played.text
    passing = made.play("planner", text="test_code.py::TestTwice::test_gone")
    assert passing.meta["status"] == "aborted"


def test_a_prompt_that_no_failing_test_belongs_to_ends_the_run(make_repository: Make) -> None:
    """The reason names the failing tests that were found, with their errors, and the next steps."""
    played = make_repository(TWO_SUBJECTS).play("planner", text=UNRELATED)
    assert played.meta["status"] == "aborted"
    found = str(played.meta["reason"])
    for part in (
        "2 failing tests found, and none seems to belong to the prompt",
        "test_prices.py::test_gross_adds_the_tax (AssertionError: assert 80.0 == 120",
        "test_pages.py::test_the_first_page",
        '--prompt "make the tests pass"',
        "--agent claude",
    ):
        assert part in found


def test_a_person_on_a_terminal_decides_about_tests_that_do_not_belong(
    make_repository: Make,
) -> None:
    """With yes all of them are planned, and the plan says why; with no the run ends."""
    made = make_repository(TWO_SUBJECTS)
    with pytest.raises(PersonNeeded, match="none seems to belong") as asked:
        made.play("planner", text=UNRELATED, attended=True)
    assert asked.value.choices == ("yes", "no")
    refused = made.play("planner", text=UNRELATED, attended=True, reply="no")
    assert refused.meta["status"] == "aborted"
    played = made.play("planner", text=UNRELATED, attended=True, reply="yes")
    phases = played.meta["phases"]
    assert isinstance(phases, list)
    assert [phase["relation"]["kind"] for phase in phases] == ["confirmed", "confirmed"]


def test_a_suite_that_takes_too_long_is_announced_first(make_repository: Make) -> None:
    """The line about the run says how many tests were run, what that means and how to run more."""
    slow = "import time\n\n\ndef test_slow():\n    time.sleep(30)\n"
    played = make_repository(
        {"code_of.py": CODE, "test_code.py": TESTS, "test_slow.py": slow, "test_z.py": slow}
    ).play("planner", limits=RepairLimits(budget_s=60.0, test_s=20.0, suite_s=4.0))
    assert "1 of 2 tests fail; 2 of 4 tests were run." in played.text
    assert "--agent-option suiteSeconds=" in played.text
    assert (played.meta["testsRun"], played.meta["testsCollected"]) == (2, 4)


def test_a_repository_without_python_is_not_one_without_tests(make_repository: Make) -> None:
    """The two have different reasons, and neither pauses the thread."""
    assert "no Python file" in reason(make_repository({"README.md": "Hello\n"}))
    assert "none of them holds a test" in reason(make_repository({"code_of.py": CODE}))


def test_without_a_failing_test_another_agent_is_named(make_repository: Make) -> None:
    """The built-in repair needs a failing test; it says how to work from a description."""
    said = reason(
        make_repository({"code_of.py": CODE.replace("x + 2", "x * 2"), "test_code.py": TESTS})
    )
    assert said.startswith("all 2 tests pass")
    assert "--agent claude" in said
    assert "`uncaged-workflow agents`" in said


def test_no_tests_at_all(make_repository: Make) -> None:
    assert reason(make_repository({"code_of.py": CODE})).startswith("no tests found")


def test_a_repository_without_python_says_so(make_repository: Make) -> None:
    """No Python file at all is another reason than Python files without a test."""
    text = reason(make_repository({"main.c": "int main(void) { return 0; }\n", "README.md": "C\n"}))
    assert text.startswith("there is no Python file in ")
    assert "no tests found" not in text


def test_a_syntax_error_differs_from_a_missing_package(make_repository: Make) -> None:
    broken = reason(make_repository({"code_of.py": "def twice(x:\n", "test_code.py": TESTS}))
    assert "does not parse" in broken
    missing = reason(
        make_repository({"code_of.py": "import no_such_package\n", "test_code.py": TESTS})
    )
    assert "cannot be imported" in missing
    assert "no_such_package" in missing
    assert ".venv" in missing


def test_a_module_that_hangs_on_import_is_reported(
    make_repository: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uncaged_repair.harness.harness.COLLECT_S", 1.0)
    assert "could not be collected in time" in reason(
        make_repository({"code_of.py": "while True: pass\n", "test_code.py": TESTS})
    )


def test_a_test_that_depends_on_others_is_not_planned_for(make_repository: Make) -> None:
    """A test that fails in the suite and passes alone is not settled by an edit of the code."""
    tests = "seen = []\n\n\ndef test_first():\n    seen.append(1)\n\n\ndef test_second():\n    assert not seen\n"
    assert "order or chance" in reason(make_repository({"test_order.py": tests}))


def test_a_test_that_hangs_is_cut_off_and_planned_for(make_repository: Make) -> None:
    """The lines of a hanging test are known: the first suspicious ones are those of the loop."""
    code = "def down(x):\n    while x != 0:\n        x -= 2\n    return x\n"
    tests = "from code_of import down\n\n\ndef test_even():\n    assert down(4) == 0\n\n\ndef test_odd():\n    assert down(3) == 0\n"
    phases = (
        make_repository({"code_of.py": code, "test_code.py": tests}).play("planner").meta["phases"]
    )
    assert isinstance(phases, list)
    assert "test_code.py::test_odd" in phases[0]["acceptance"]
    assert "code_of.py:" in phases[0]["description"]


def test_a_test_that_ends_its_process_does_not_end_the_run(make_repository: Make) -> None:
    tests = "import os\n\n\ndef test_a():\n    os.kill(os.getpid(), 9)\n\n\ndef test_b():\n    os._exit(0)\n\n\ndef test_c():\n    pass\n"
    played = make_repository({"test_ends.py": tests}).play("planner")
    assert "2 of 3 tests fail" in played.text


def test_unittest_serves_where_pytest_is_not_asked_for(make_repository: Make) -> None:
    tests = (
        "import unittest\nfrom code_of import twice\n\n\nclass T(unittest.TestCase):\n"
        "    def test_five(self):\n        self.assertEqual(twice(5), 10)\n"
    )
    played = make_repository({"code_of.py": CODE, "test_code.py": tests}).play(
        "planner", test_command="python -m unittest"
    )
    assert "1 of 1 test fail" in played.text
    phases = played.meta["phases"]
    assert isinstance(phases, list)
    assert "test_code.T.test_five" in phases[0]["acceptance"]


def test_any_other_command_counts_by_its_exit_code(make_repository: Make) -> None:
    """The places that its output names are the suspects."""
    script = "from code_of import twice\nassert twice(5) == 10\n"
    made = make_repository(
        {"code_of.py": "def twice(x):\n    raise ValueError(x)\n", "check.py": script}
    )
    played = made.play("planner", test_command=f"{sys.executable} check.py")
    phases = played.meta["phases"]
    assert isinstance(phases, list)
    assert "code_of.py:2" in phases[0]["description"]


def test_a_program_that_is_not_there_is_named(make_repository: Make) -> None:
    assert "no-such-program" in reason(
        make_repository({"code_of.py": CODE}), "no-such-program --all"
    )


def test_a_command_may_choose_the_tests(make_repository: Make) -> None:
    made = make_repository({"code_of.py": CODE, "test_code.py": TESTS})
    assert reason(made, "pytest test_code.py -k two").startswith("all 1 test pass")


def test_the_tests_of_a_subdirectory(make_repository: Make) -> None:
    """Where the person started counts: tests and imports are looked for from there."""
    made = make_repository(
        {
            "sub/code_of.py": CODE,
            "sub/test_code.py": TESTS,
            "test_other.py": "def test_no():\n    assert False\n",
        }
    )
    played = made.play("planner", inside="sub")
    assert "1 of 2 tests fail" in played.text


def test_a_directory_without_git_says_so(
    make_repository: Make, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = make_repository({"code_of.py": CODE})
    with pytest.raises(EnvironmentLacks):
        made.play("planner", inside=str(tmp_path_factory.mktemp("elsewhere")))
