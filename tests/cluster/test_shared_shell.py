"""The shell on a shared store: a pipe, a terminal, and completion."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click import Command, Context
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from testbed.foreground import environment
from testbed.kitchens import Kitchen, Machine, opened
from testbed.terminal import InteractiveCommand
from uncaged_cli.entry import STORE_VARIABLE
from uncaged_cli.inputs import stores
from uncaged_cli.inputs.stores import inherited, on_present_store, option_of_store
from uncaged_cli.main import group
from uncaged_cli.shell.completer import LineCompleter

NOT_FOUND = 5
LINES = """
# a comment
what is the hour
@conversation new piped
@conversation list
@threads --store {other}
"""


def variables_of(home: Path) -> dict[str, str]:
    """Return the variables of a machine where the option alone names the store."""
    found = {**environment(), "UNCAGED_WORKFLOW_HOME": str(home)}
    found.pop(STORE_VARIABLE, None)
    return found


def piped(kitchen: Kitchen, text: str, *words: str) -> tuple[int, str]:
    """Return the exit code and the output of a shell that reads a text."""
    done = subprocess.run(
        [sys.executable, "-m", "uncaged_cli", "shell", "--store", kitchen.address, *words],
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=variables_of(kitchen.directory / "first"),
        cwd=kitchen.directory,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_the_lines_of_a_pipe_use_the_store_of_the_option(
    kitchen: Kitchen, machine: Machine
) -> None:
    """Sentences run on its workers, and @ verbs look at it without the option; one that is given
    is followed.
    """
    other = f"{kitchen.address}_other"
    code, said = piped(kitchen, LINES.format(other=f"'{other}'"), "--no-model")
    assert code == NOT_FOUND
    assert "it is late" in said and "piped" in said
    assert "there is no store" in said and other in said
    listed = json.loads(machine.said("second", ["conversation", "list", "--json"]))
    assert "piped" in [one["name"] for one in listed]
    code, said = piped(kitchen, "what is the hour\n@ps\n", "--json")
    results = [json.loads(line) for line in said.splitlines() if line.startswith('{"event":"res')]
    assert [one["result"]["message"] for one in results] == ["it is late"]
    assert (code, said[-3:]) == (0, "[]\n")


@pytest.mark.slow
@pytest.mark.usefixtures("worker")
def test_a_shell_on_a_terminal_uses_one_store(
    kitchen: Kitchen, machine: Machine, tmp_path: Path
) -> None:
    """A request runs on a worker while the prompt stays; a verb changes the same store, and a
    question that the shell leaves open is answered at another machine.
    """
    home = tmp_path / "home"
    home.mkdir()
    machine.said("second", ["conversation", "new", "typed"])
    words = ["shell", "--store", kitchen.address, "--conversation", "typed"]
    with InteractiveCommand(words, variables_of(home), tmp_path) as terminal:
        terminal.expect("typed>")
        terminal.type("what is the hour\r")
        terminal.expect("it is late")
        terminal.type("@conversation rename retyped\r")
        terminal.expect("retyped>")
        terminal.type("bake cakes\r")
        terminal.expect("how many?")
        terminal.type("\x04")
        terminal.expect("retyped>")
        terminal.type("\x04")
        assert terminal.process.wait(timeout=60) == 0
    shown = machine.said("second", ["conversation", "show", "retyped"])
    assert "it is late" in shown and "bake cakes" in shown
    assert "3 cakes" in machine.said("second", ["answer", "latest", "3"])


def test_a_line_is_completed_from_the_store_of_the_shell(
    kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Words of its rules, its flows as arguments of verbs, and its packs, of which there may be new
    ones; also where the option alone names it.
    """
    monkeypatch.setenv("UNCAGED_WORKFLOW_HOME", str(tmp_path))
    context = Context(Command("shell"))
    context.meta[stores._ADDRESS] = kitchen.address
    with opened(kitchen.address, tmp_path) as engine, context, inherited():
        completer = LineCompleter(engine, lambda: group)

        def completed(text: str) -> list[str]:
            found = completer.get_completions(Document(text), CompleteEvent())
            return [one.text.strip() for one in found]

        assert "cakes" in completed("bake ")
        assert completed("@run c") == ["cakes", "clock"]
        packs = engine.store.documents / "packs"
        packs.mkdir(exist_ok=True)
        (packs / "sweets.yaml").write_text("name: sweets\n")
        assert completed("@swee") == ["sweets"]
        completer.close()


def test_a_message_of_a_request_names_the_store() -> None:
    """In its thread of execution, too, where no verb is run; the control: without the wrapper."""
    named: list[str] = []
    context = Context(Command("shell"))
    context.meta[stores._ADDRESS] = "postgresql://h/d"
    with context:
        show = on_present_store(lambda: named.append(option_of_store()))
    show()
    assert named == [" --store postgresql://h/d"]
    on_present_store(lambda: named.append(option_of_store()))()
    assert named[1:] == [""]
