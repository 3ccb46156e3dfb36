"""Tasks to capture: their worlds, their scripted calls and their checkers, without the engine."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from benchmarks.captured_tasks.attempt import other_parameters
from benchmarks.captured_tasks.rule import SETS, Outcome, Rule
from benchmarks.captured_tasks.tasks import FAMILIES, RULES
from benchmarks.outside.scripted_model import Call
from benchmarks.outside.service import service

URL = "http://127.0.0.1:1"
LOCAL = [rule for rule in RULES if rule.needs == "workspace"]


def performed(call: Call, directory: Path) -> str:
    """Perform a call of a workspace tool, and return its result as the toolbox writes it."""
    arguments = call.arguments
    match call.tool:
        case "run":
            command = ["sh", "-c", arguments["command"]]
            done = subprocess.run(
                command, cwd=directory, capture_output=True, text=True, check=False
            )
            return f"[exit code {done.returncode}]\n{done.stdout}"
        case "edit":
            path = directory / arguments["path"]
            text = path.read_text()
            assert arguments.get("all") or text.count(arguments["old"]) == 1
            path.write_text(text.replace(arguments["old"], arguments["new"]))
            return "done"
        case "write":
            (directory / arguments["path"]).write_text(arguments["text"])
            return "done"
        case "read" if (directory / arguments["path"]).is_file():
            return str((directory / arguments["path"]).read_text())
        case _:
            return "nothing"


def test_there_are_ten_tasks_of_each_family() -> None:
    """Forty names, and three sets of values that differ and are all in the prompt."""
    assert [sum(rule.family == one for rule in RULES) for one in FAMILIES] == [10] * 4
    assert len({rule.name for rule in RULES}) == 40
    for rule in RULES:
        settings = [rule.setting(7, number, URL) for number in range(SETS)]
        for key in settings[0].values:
            assert len({one[key] for one in settings}) == SETS
        for one in settings:
            assert all(value in rule.prompt(one) for value in one.values.values())
            assert one == rule.setting(7, one.number, URL)


@pytest.mark.parametrize("rule", LOCAL, ids=lambda rule: rule.name)
def test_a_world_is_right_after_the_calls_and_wrong_before(rule: Rule, tmp_path: Path) -> None:
    """The checker accepts each set's own outcome, and neither an untouched world nor the answer of
    another set.
    """
    answers: list[str] = []
    outcomes: list[Outcome] = []
    with service() as running:
        settings = [rule.setting(3, number, running.url) for number in range(SETS)]
        for number, setting in enumerate(settings):
            directory = tmp_path / str(number)
            running.serve(partial(rule.answer, setting))
            rule.build(setting, directory)
            before = Outcome(directory=directory, requests=(), text="")
            assert rule.wrong(setting, before)
            answers.append(played(rule, number, running.url, directory))
            requests = list(running.requests)
            outcomes.append(Outcome(directory=directory, requests=requests, text=answers[-1]))
            assert rule.wrong(setting, outcomes[-1]) == ""
    assert rule.wrong(settings[1], outcomes[0])
    assert rule.wrong(settings[2], outcomes[1])


def played(rule: Rule, number: int, url: str, directory: Path) -> str:
    """Do a task with all its detours; return the answer."""
    play = rule.wandering(rule.setting(3, number, url))
    try:
        calls: Sequence[Call] = next(play)
        while True:
            calls = play.send([performed(call, directory) for call in calls])
    except StopIteration as stop:
        return str(stop.value)


def test_parameters_of_another_set_are_found_by_the_recorded_values() -> None:
    """Whole values, values inside longer ones, and words of a value; others keep their defaults."""
    [rule] = [one for one in RULES if one.name == "repository-row-in-table"]
    first, other = (rule.setting(3, number, URL) for number in (0, 1))
    old, new = first["about"].split(), other["about"].split()
    recorded = {"a": first["name"], "b": f"x {first['about']}", "c": " ".join(old[:2]), "d": "x"}
    assert other_parameters(recorded, first, other) == {
        "a": other["name"],
        "b": f"x {other['about']}",
        "c": " ".join(new[:2]),
    }
