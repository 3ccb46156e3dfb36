"""One broken flow: its past, its failing run, the fix, and the checker's runs of the fixed flow."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..outside.command import CommandLine, Ran, command_line, options_of
from ..outside.scripted_model import ScriptedModel, scripted_model
from ..outside.service import Service, service
from .case import BrokenFlow, Parameters, Recipe, World
from .editor import editing
from .flows import broken_flows

__all__ = ["MODES", "Attempt", "Mode", "attempt"]

Mode = Literal["none", "right", "wrong", "by-hand", "wrong-by-hand"]
MODES: tuple[Mode, ...] = ("none", "right", "wrong", "by-hand", "wrong-by-hand")
"""Without a model; with one that writes the right or a wrong recipe; without the verb `fix`, to
test the checker itself.
"""
FIX_S = 400.0


@dataclass(slots=True, kw_only=True)
class Attempt:
    """What happened. fault: why the case is no case, a fault of the benchmark. proposed: whether
    there was an open proposal after `fix`. silent: whether its evidence has nothing against it,
    such as a past thread that would end differently. wrong: how the accepted flow was wrong.
    """

    name: str
    family: str
    seed: int
    mode: Mode
    fix: str
    fault: str = ""
    proposed: bool = False
    silent: bool = False
    code: int = 0
    report: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    refused: str = ""
    wrong: tuple[str, ...] = ()
    wall_s: float = 0.0
    cpu_s: float = 0.0

    @property
    def verdict(self) -> str:
        """Return `fault`, `right`, `wrong`, `honest` (no proposal, exit code 3) or `failed`."""
        if self.fault:
            return "fault"
        if self.proposed and not self.refused:
            return "wrong" if any(self.wrong) else "right"
        return "honest" if self.code == 3 or self.refused else "failed"

    def document(self) -> dict[str, Any]:
        return {**asdict(self), "wrong": list(self.wrong), "verdict": self.verdict}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A store, and the world of a case."""

    root: Path
    commands: CommandLine
    model: ScriptedModel
    service: Service
    other: Service

    @property
    def directory(self) -> Path:
        return self.root / "world"

    def build(self, world: World) -> None:
        world.build(self.directory, self.commands.programs, self.service, self.other)

    def run(self, flow: str, parameters: Parameters, *options: str) -> Ran:
        return self.commands.run(
            "run", flow, "--json", *options, *options_of(parameters), cwd=self.directory
        )


def attempt(name: str, seed: int, root: Path, mode: Mode, *, quick: bool = False) -> Attempt:
    """Try the case of that name. quick: with one good thread, and one other set."""
    with (
        command_line(root) as commands,
        scripted_model() as model,
        service() as running,
        service() as other,
    ):
        [case] = [one for one in broken_flows(seed, running.url, other.url) if one.name == name]
        bench = Bench(root=root, commands=commands, model=model, service=running, other=other)
        found = Attempt(name=name, family=case.family, seed=seed, mode=mode, fix=case.fix)
        commands.configure(
            {"agents": {"scripted": model.agent()}} if mode in ("right", "wrong") else {}
        )
        found.fault = broken(bench, case, case.past[:1] if quick else case.past)
        if found.fault:
            return found
        begin_s = time.monotonic()
        if mode in ("by-hand", "wrong-by-hand"):
            by_hand(bench, case, found)
        else:
            fixed(bench, case, found)
        found.wall_s = time.monotonic() - begin_s
        if found.proposed and not found.refused:
            found.wrong = tuple(checked(bench, case, case.sets[:2] if quick else case.sets))
        return found


def broken(bench: Bench, case: BrokenFlow, past: Sequence[Parameters]) -> str:
    """Give the flow its past, then let it fail; return why that did not work."""
    flow = case.flow
    bench.build(case.before)
    added = add(bench, flow, case.recipe)
    if added.code != 0:
        return f"the flow cannot be added: {added.reason}"
    for parameters in past:
        ran = bench.run(flow, parameters)
        if ran.code != 0:
            return f"a good thread ended with exit code {ran.code}: {ran.reason}"
    bench.build(case.after)
    ran = bench.run(flow, case.failing, *(["--heal", "off"] if is_web(case) else []))
    if ran.code == 0:
        return f"the failing thread has success: {ran.text[:200]!r}"
    if '"event":"start"' not in ran.stdout:
        return f"the failing run started no thread: {ran.reason}"
    return ""


def add(bench: Bench, flow: str, recipe: Recipe) -> Ran:
    path = bench.root / "recipe.json"
    path.write_text(json.dumps(recipe), "utf-8")
    return bench.commands.run("add", flow, str(path), "--accept", "--json", cwd=bench.root)


def by_hand(bench: Bench, case: BrokenFlow, found: Attempt) -> None:
    """Add the right or the mistaken recipe, as a person would."""
    recipe = case.right if found.mode == "by-hand" else case.mistaken
    if recipe is None:
        found.code = 3
        return
    added = add(bench, case.flow, recipe)
    found.proposed, found.code, found.report = added.code == 0, added.code, added.reason


def fixed(bench: Bench, case: BrokenFlow, found: Attempt) -> None:
    """Fix the thread that ran last, and accept what is proposed."""
    commands = bench.commands
    agent: Sequence[str] = ()
    if found.mode != "none":
        recipe = case.right if found.mode == "right" else case.mistaken
        bench.model.play(lambda conversation: editing(conversation, recipe))
        agent = ("--agent", "scripted")
    ran = commands.run("fix", "latest", *agent, "--json", cwd=bench.directory, wall_s=FIX_S)
    found.code, found.report, found.cpu_s = ran.code, ran.reason, ran.cpu_s
    found.evidence = ran.document
    found.silent = is_silent(found.evidence.get("evidence", {}))
    opened = open_proposals(commands, bench.directory)
    found.proposed = bool(opened)
    if opened:
        accepted = commands.run("proposal", "accept", opened[0], "--accept", cwd=bench.directory)
        found.refused = "" if accepted.code == 0 else accepted.reason


def is_silent(evidence: Mapping[str, Any]) -> bool:
    """Whether evidence names no thread that ends differently, no example that fails, no wider
    policy, no change of examples, and no trial without success.
    """
    threads = evidence.get("threads") or {}
    return (
        not threads.get("different")
        and evidence.get("policy") == "not wider"
        and not evidence.get("attention")
        and str(evidence.get("trial", "")).startswith("success")
        and "fail" not in json.dumps(evidence.get("examples", ""))
    )


def open_proposals(commands: CommandLine, directory: Path) -> list[str]:
    """Return the ids of the open proposals of the store."""
    listed = commands.run("proposals", "--json", cwd=directory).document.get("proposals", ())
    return [str(one["proposalId"]) for one in listed]


def checked(bench: Bench, case: BrokenFlow, sets: Sequence[Parameters]) -> list[str]:
    """Run the flow with each set in the world as it is now, and compare with the truth."""
    flow, found = case.flow, []
    for parameters in sets:
        bench.build(case.after)
        ran = bench.run(flow, parameters, *(["--heal", "off"] if is_web(case) else []))
        if ran.code != 0:
            found.append(f"with {dict(parameters)} exit code {ran.code}: {ran.reason}")
            continue
        found.append(case.wrong(parameters, message_of(ran), bench.service.requests))
    return found


def message_of(ran: Ran) -> str:
    """Return the message of a result; of a web flow the text that it kept."""
    data = ran.result.get("data")
    kept = data.get("kept", {}) if isinstance(data, Mapping) else {}
    return str(kept.get("found", ran.result.get("message", "")))


def is_web(case: BrokenFlow) -> bool:
    return case.recipe.get("kind") == "web"
