"""One task from the first run with the scripted model to the replays of the captured flow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..outside.command import CommandLine, Ran, command_line, options_of
from ..outside.scripted_model import Conversation, Play, ScriptedModel, scripted_model
from ..outside.service import Service, service
from .definitions import CALLER, WORKER, write_definition
from .rule import SETS, Outcome, Rule, Setting

__all__ = ["Attempt", "Bench", "attempt"]

CAPTURED = "captured-task"


@dataclass(slots=True, kw_only=True)
class Attempt:
    """What happened. first: how the first run was wrong, which is a fault of the task. refused: the
    reason of `capture`. wrong: how the captured flow was wrong on each other set. requests: those
    to the model while the captured flow ran.
    """

    name: str
    family: str
    seed: int
    first: str = ""
    captured: bool = False
    form: str = ""
    refused: str = ""
    proof: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()
    requests: int = 0
    first_wall_s: float = 0.0
    first_cpu_s: float = 0.0
    replay_wall_s: float = 0.0
    replay_cpu_s: float = 0.0

    @property
    def right(self) -> bool:
        """Whether the captured flow was right on both other sets, without a model."""
        return self.captured and not any(self.wrong) and self.requests == 0

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "wrong": list(self.wrong), "right": self.right}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A store with a scripted model as its agent, and a service of the world."""

    root: Path
    commands: CommandLine
    model: ScriptedModel
    service: Service

    def world(self, rule: Rule, setting: Setting) -> Path:
        """Make the world of a parameter set: its files, and the service's state."""
        directory = self.root / f"world-{setting.number}"
        rule.build(setting, directory)
        self.service.serve(lambda request: rule.answer(setting, request))
        return directory


def attempt(rule: Rule, seed: int, root: Path, *, play: bool = True) -> Attempt:
    """Do a task once, capture it, run the flow on the other sets. play: False does only the first
    run.
    """
    with command_line(root) as commands, scripted_model() as model, service() as running:
        bench = Bench(root=root, commands=commands, model=model, service=running)
        found = Attempt(name=rule.name, family=rule.family, seed=seed)
        setting = rule.setting(seed, 0, running.url)
        directory = bench.world(rule, setting)
        run_first(bench, rule, setting, directory, found)
        if play and not found.first:
            capture(bench, directory, found)
        if found.captured:
            replay(bench, rule, seed, found)
        return found


def run_first(bench: Bench, rule: Rule, setting: Setting, directory: Path, found: Attempt) -> None:
    """Run the task with the scripted model, and check the world."""
    commands, agent = bench.commands, bench.model.agent()
    commands.configure({"agents": {"mine": agent}, "agent": "mine"})
    flow, options = add_flows(bench, rule, setting)
    bench.model.play(lambda conversation: _answered(rule, setting, conversation))
    ran = commands.run(
        "run", flow, "--json", "--prompt", rule.prompt(setting), *options, cwd=directory
    )
    found.first_wall_s, found.first_cpu_s = ran.wall_s, ran.cpu_s
    if ran.code != 0:
        errors = "; ".join(bench.model.errors[:2])
        found.first = f"the first run ended with exit code {ran.code}: {ran.reason} {errors}"
        return
    place = directory
    if rule.needs == "workspace":
        place = worktree_of(commands)
    outcome = Outcome(directory=place, requests=list(bench.service.requests), text=ran.text)
    found.first = rule.wrong(setting, outcome)


def add_flows(bench: Bench, rule: Rule, setting: Setting) -> tuple[str, list[str]]:
    """Add the flow whose role does the task, and its tools; return its name and options."""
    commands, root = bench.commands, bench.root
    if rule.needs == "browser":
        return "web-goal", ["--param", f"url={setting.url}"]
    names: list[str] = []
    for recipe in rule.flows(setting.url):
        names.append(str(recipe["name"]))
        path = root / f"{names[-1]}.json"
        path.write_text(json.dumps(recipe), "utf-8")
        _must(commands.run("add", names[-1], str(path), "--accept", cwd=root))
    name = CALLER if names else WORKER
    definition = write_definition(root, name, tuple(names))
    _must(commands.run("add", name, str(definition), "--accept", cwd=root))
    return name, []


def capture(bench: Bench, directory: Path, found: Attempt) -> None:
    """Capture the thread that ran last."""
    ran = bench.commands.run(
        "capture", "latest", "--name", CAPTURED, "--accept", "--json", cwd=directory
    )
    document = ran.document
    found.captured = ran.code == 0 and "flow" in document
    if not found.captured:
        found.refused = ran.reason
        return
    proof = document["proof"]
    place = f" at step {proof['step']}" if "step" in proof else ""
    found.proof = f"{proof['state']}{place}"
    found.form = str(document.get("form", ""))
    found.parameters = dict(document.get("parameters", {}))


def replay(bench: Bench, rule: Rule, seed: int, found: Attempt) -> None:
    """Run the captured flow on the other sets, without a model."""
    bench.commands.configure({})
    asked, wrong = bench.model.requests, []
    original = rule.setting(seed, 0, bench.service.url)
    for number in range(1, SETS):
        setting = rule.setting(seed, number, bench.service.url)
        directory = bench.world(rule, setting)
        options = options_of(other_parameters(found.parameters, original, setting))
        ran = bench.commands.run("run", CAPTURED, "--json", *options, cwd=directory)
        found.replay_wall_s += ran.wall_s / (SETS - 1)
        found.replay_cpu_s += ran.cpu_s / (SETS - 1)
        if ran.code != 0:
            wrong.append(f"exit code {ran.code}: {ran.reason}")
            continue
        outcome = Outcome(
            directory=directory,
            requests=list(bench.service.requests),
            text=ran.text,
        )
        wrong.append(rule.wrong(setting, outcome))
    found.wrong, found.requests = tuple(wrong), bench.model.requests - asked


def other_parameters(
    recorded: Mapping[str, Any], original: Setting, setting: Setting
) -> dict[str, object]:
    """Return the parameters for another set: where a recorded value has a value of the original
    prompt, that of the other set, the longest first; where it is some words of such a value, the
    same words of the other set's. Others keep their defaults.
    """
    found: dict[str, object] = {}
    order = sorted(original.values, key=lambda one: -len(original.values[one]))
    for name, value in recorded.items():
        text = str(value)
        for key in order:
            old, new = original.values[key], setting.values[key]
            other = text.replace(old, new) if old in text else part_of(text, old, new)
            if other is not None and other != text:
                found[name] = other
                break
    return found


def part_of(text: str, old: str, new: str) -> str | None:
    """Return those words of *new* that are at the places of *text* in *old*; None without any."""
    words, among, others = text.split(), old.split(), new.split()
    for start in range(len(among) - len(words) + 1):
        if len(among) == len(others) and among[start : start + len(words)] == words:
            return " ".join(others[start : start + len(words)])
    return None


def worktree_of(commands: CommandLine) -> Path:
    """Return the worktree of the only thread that has one."""
    places = [path for path in (commands.store / "work").iterdir() if not path.suffix]
    return places[0]


def _answered(rule: Rule, setting: Setting, conversation: Conversation) -> Play:
    """Do the task and end with the block that the role's answer needs."""
    if not conversation.tools:
        raise RuntimeError("the model has no tools")
    message = yield from rule.wandering(setting)
    answer = json.dumps({"status": "done", "message": message})
    return f"{message}\n\n```json\n{answer}\n```\n"


def _must(ran: Ran) -> None:
    if ran.code != 0:
        raise RuntimeError(f"{' '.join(ran.arguments[:3])}: {ran.reason}")
