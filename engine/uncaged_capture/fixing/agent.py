"""Agent kind for the roles `diagnostician` and `fixer` without a model: it knows kinds of failures,
and changes the flow only if exactly one change is likely.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from uncaged_bundles.builders.recipes.recipe import load_json
from uncaged_bundles.errors import BundleError
from uncaged_bundles.rights import Rights
from uncaged_engine.door.agents import AgentAnswer, AgentCheck, AgentFailed, AgentKind, AgentRequest
from uncaged_engine.services import agent_settings as check

from .candidates import FoundFixes, find_candidates
from .case import FixCase, read_case
from .failed import DIRECTORY, ERROR_FILE, FLOW_FILE, PAGE_FILE
from .machine import Machine
from .scratch import read_file

__all__ = ["FixerAgent"]

KIND = "fixer"


class FixerAgent(AgentKind):
    """No settings."""

    name = KIND
    about = "no model; fixes flows that failed in a known way, if one change is likely"
    plays = ("diagnostician", "fixer")

    def __init__(self, settings: Mapping[str, object]) -> None:
        check.known(settings, kind=KIND)

    @classmethod
    def holds(cls, settings: Mapping[str, object], rights: Rights) -> None:
        """Return None: it only writes one file of the worktree."""
        del settings, rights

    def check(self, request: AgentRequest) -> AgentCheck:
        del request
        return AgentCheck(level="ok", text="built in: no model, no key; it fixes known failures")

    def answer(self, request: AgentRequest) -> AgentAnswer:
        tree, role = request.worktree, request.role.name
        if role not in self.plays or tree is None:
            raise AgentFailed(
                f"the agent {KIND!r} plays {' and '.join(self.plays)} in a scratch repository, not {role!r}; bind another agent"
            )
        machine = Machine(
            environment=request.environment,
            directory=directory_in(tree),
            sandbox=request.sandbox,
        )
        found = find_candidates(case_in(tree), machine)
        meta = _diagnosis(found) if role == "diagnostician" else _change(found, tree, request)
        data = json.dumps(meta, ensure_ascii=False)
        text = meta.get("summary") or meta.get("cause")
        return AgentAnswer(text=f"{text}\n\n```json\n{data}\n```\n")


def case_in(tree: Path) -> FixCase:
    """Return the case of the files in a scratch repository.

    Raises:
        AgentFailed: they cannot be read.
    """
    try:
        recipe = load_json(read_file(tree / FLOW_FILE).encode())
        records = _records(tree / "journal.jsonl")
        before = _records(tree / "success.jsonl") if (tree / "success.jsonl").exists() else []
        page = json.loads(read_file(tree / PAGE_FILE)) if (tree / PAGE_FILE).exists() else None
    except (OSError, ValueError, BundleError) as exc:
        raise AgentFailed(f"the files of the failed flow cannot be read: {exc}") from exc
    if not isinstance(recipe, Mapping):
        raise AgentFailed(f"{FLOW_FILE} is no recipe")
    return read_case(recipe, records, before, page)


def directory_in(tree: Path) -> Path:
    """Return the caller's directory, as the files in a scratch repository name it; else that of
    this process, a worker of a shared store.

    Raises:
        AgentFailed: they cannot be read.
    """
    try:
        lines = read_file(tree / ERROR_FILE).splitlines()
    except (OSError, ValueError) as exc:
        raise AgentFailed(f"{ERROR_FILE} cannot be read: {exc}") from exc
    named = (one.removeprefix(DIRECTORY) for one in lines if one.startswith(DIRECTORY))
    return Path(next(named, Path.cwd()))


def _records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in read_file(path).splitlines()]


def _diagnosis(found: FoundFixes) -> dict[str, object]:
    if len(found.candidates) == 1:
        return {"status": "found", "cause": found.candidates[0].why}
    if found.candidates:
        listed = "; ".join(one.why for one in found.candidates)
        cause = f"{len(found.candidates)} changes are likely, so none is made: {listed}"
    else:
        looked = "; ".join(found.looked) or "no known kind of failure fits"
        cause = f"no change is likely: {looked}"
    return {"status": "hopeless", "cause": cause}


def _change(found: FoundFixes, tree: Path, request: AgentRequest) -> dict[str, object]:
    if any(step.get("role") == request.role.name for step in request.steps):
        return {
            "status": "stuck",
            "summary": "the proof of the one likely change failed, and there is no other",
        }
    if len(found.candidates) != 1:
        return {"status": "stuck", "summary": str(_diagnosis(found)["cause"])}
    [candidate] = found.candidates
    text = json.dumps(candidate.recipe, indent=2, ensure_ascii=False) + "\n"
    (tree / FLOW_FILE).write_text(text, "utf-8")
    return {"status": "changed", "summary": candidate.why}
