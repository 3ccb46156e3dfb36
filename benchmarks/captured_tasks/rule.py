"""Rules that make tasks: values of a prompt, a world for them, the calls of a scripted model, and
what the world must be afterwards. Everything follows from the rule, the seed and the number of the
parameter set; set 0 is the original.
"""

from __future__ import annotations

import re
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from ..outside.scripted_model import Call, Play
from ..outside.service import NOT_FOUND, Answer, Request

__all__ = ["WORDS", "Outcome", "Rule", "Setting", "answer_is", "files_are", "output", "run"]

SETS = 3
"""The original parameters and two other sets."""
TOOLS = ("list", "read", "search", "edit", "write", "run")
GIT = ("git", "-c", "user.name=A Person", "-c", "user.email=person@example.org")
WORDS = (
    *("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "harbor", "indigo"),
    *("juniper", "kelp", "lagoon", "maple", "nectar", "opal", "pebble", "quartz", "raven"),
    *("saffron", "tundra", "umber", "velvet", "willow", "yarrow", "zephyr"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One parameter set with its world. url: of the service. values: by name; each occurs in the
    prompt. data: source of what else is in the world.
    """

    seed: int
    number: int
    values: Mapping[str, str]
    url: str
    key: str

    def random(self, part: str = "") -> Random:
        """Return the choices of the world; the same at every call."""
        return Random(f"{self.key} {self.seed} {self.number} {part}")  # noqa: S311 - no secrets

    def __getitem__(self, name: str) -> str:
        return self.values[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A world after a run. directory: the files. requests: those that the service got. text: the
    message and data of the result.
    """

    directory: Path
    requests: Sequence[Request]
    text: str


class Rule(ABC):
    """A kind of task. needs: `workspace`, `flows` or `browser`, the tools of the model."""

    family: str
    needs: str = "workspace"

    @property
    def name(self) -> str:
        words = re.findall(r"[A-Z][a-z]*", type(self).__name__)
        return f"{self.family}-{'-'.join(words).lower()}"

    def setting(self, seed: int, number: int, url: str) -> Setting:
        """Return parameter set *number*; no two sets of a seed share a value that differs at
        all.
        """
        key = self.name
        found = [
            self.values(Random(f"{key} {seed}"), one)  # noqa: S311 - no secrets
            for one in range(SETS)
        ]
        return Setting(seed=seed, number=number, values=found[number], url=url, key=key)

    @abstractmethod
    def values(self, random: Random, number: int) -> Mapping[str, str]:
        """Return the values of set *number*. The same random choices are made for each set."""

    @abstractmethod
    def prompt(self, setting: Setting) -> str:
        """Return the task in a person's words, with all values."""

    def files(self, setting: Setting) -> Mapping[str, str]:
        """Return the files of the world by path."""
        del setting
        return {"README": "Files of a person.\n"}

    def answer(self, setting: Setting, request: Request) -> Answer:
        """Answer a request to the world's service."""
        del setting, request
        return NOT_FOUND

    def flows(self, url: str) -> Sequence[Mapping[str, object]]:
        """Return recipes of flows that the model has as tools."""
        del url
        return ()

    @abstractmethod
    def play(self, setting: Setting) -> Play:
        """Do the task with the tools; return the answer for the person."""

    def detours(self, setting: Setting) -> Sequence[Call]:
        """Return calls that the task does not need: looks, and calls that fail."""
        random = setting.random("detours")
        paths = sorted(self.files(setting))
        return (
            Call(tool="list", arguments={}),
            Call(tool="read", arguments={"path": f"{random.choice(WORDS)}-missing.txt"}),
            run(f"ls {random.choice(WORDS)}-nowhere"),
            *(Call(tool="read", arguments={"path": path}) for path in paths[:1] * 2),
            Call(tool="search", arguments={"pattern": random.choice(WORDS)}),
        )

    @abstractmethod
    def wrong(self, setting: Setting, outcome: Outcome) -> str:
        """Return how the outcome differs from what the task asks for; "" if it does not."""

    def build(self, setting: Setting, directory: Path) -> None:
        """Write the files of the world into a git repository."""
        directory.mkdir(parents=True)
        for path, text in self.files(setting).items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_text(text, "utf-8")
        for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
            subprocess.run([*GIT, *words], cwd=directory, check=True, capture_output=True)

    def wandering(self, setting: Setting) -> Play:
        """Do the task with detours between the calls, whose results are not used."""
        random = setting.random("path")
        detours = [*self.detours(setting)]
        random.shuffle(detours)
        play = self.play(setting)
        try:
            calls = next(play)
            while True:
                if detours and random.random() < 0.7:
                    yield [detours.pop()]
                results = yield calls
                calls = play.send(results)
        except StopIteration as stop:
            return str(stop.value)


def run(command: str) -> Call:
    return Call(tool="run", arguments={"command": command})


def output(result: str) -> str:
    """Return what a command printed, without the line about its exit code.

    Raises:
        RuntimeError: the command failed; the script of the model is wrong.
    """
    head, _, text = result.partition("\n")
    if head != "[exit code 0]":
        raise RuntimeError(f"a command of the scripted model failed: {result[:300]}")
    return text.strip()


def files_are(outcome: Outcome, expected: Mapping[str, str | None]) -> str:
    """Compare files by path; None: the file must not be there."""
    for name, text in expected.items():
        path = outcome.directory / name
        found = path.read_text("utf-8") if path.is_file() else None
        if found != text:
            return f"{name} is {_short(found)}, not {_short(text)}"
    return ""


def answer_is(outcome: Outcome, expected: str) -> str:
    """Look for the expected answer as a whole word, or as whole words, in the result."""
    if re.search(rf"(?<![\w.-]){re.escape(expected)}(?![\w-])(?!\.\d)", outcome.text):
        return ""
    return f"the result {_short(outcome.text)} does not have {expected!r}"


def _short(text: str | None) -> str:
    return "missing" if text is None else repr(text if len(text) < 120 else text[:117] + "...")
