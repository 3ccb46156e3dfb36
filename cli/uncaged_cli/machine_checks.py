"""Checks of this machine for `doctor`: each requirement is tried, and each failure has a remedy."""

from __future__ import annotations

import os
import platform
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from uncaged_bundles.clean import clean_line
from uncaged_bundles.errors import SandboxUnavailable, UncagedError

from .catalog import is_installed, nearest
from .display.sizes import spell_bytes

if TYPE_CHECKING:
    from uncaged_engine.api import Engine
    from uncaged_engine.settings.config import Config

OLDEST_PYTHON = (3, 11)
OLDEST_GIT = (2, 25)
LEAST_FREE_BYTES = 200_000_000
GIT_TIMEOUT_S = 10
PROBE_BUNDLE = b"""descriptor = {"contract": 1, "name": "probe", "description": "Does nothing.", "kind": "workflow",
              "parameters": {}, "roles": {}, "policy": {}, "continues": True}


def run(input, options):
    yield {"output": {"role": "probe", "content": "", "meta": {}}}
    return {"success": True}
"""

Level = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the report.

    remedy: what to do if the level is not `ok`. live: further data about an agent that was tried.
    """

    name: str
    level: Level
    text: str
    remedy: str = ""
    live: Mapping[str, object] | None = None

    def document(self) -> dict[str, object]:
        fields: dict[str, object] = {
            "name": self.name,
            "level": self.level,
            "text": self.text,
            "remedy": self.remedy,
        }
        return fields if self.live is None else {**fields, "live": dict(self.live)}


def machine_checks(engine: Engine) -> Iterator[Check]:
    """Yield each check as soon as it is done."""
    yield check_python(sys.version_info[:2])
    yield check_git()
    yield from check_store(engine)
    yield from check_sandboxes(engine)
    yield from check_browsers()
    yield from check_config_and_agents(engine)


def check_python(version: tuple[int, int]) -> Check:
    text = f"{platform.python_version()}, {sys.executable}"
    if version < OLDEST_PYTHON:
        return Check(
            name="python",
            level="problem",
            text=text,
            remedy=f"install Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or newer",
        )
    return Check(name="python", level="ok", text=text)


def check_git(program: str = "git") -> Check:
    """Check git, which flows with a workspace need."""
    remedy = "install git 2.25 or newer; flows with a workspace need it"
    try:
        answer = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            timeout=GIT_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as problem:
        return Check(name="git", level="problem", text=clean_line(str(problem)), remedy=remedy)
    found = re.search(r"(\d+)\.(\d+)", answer.stdout)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GIT:
        return Check(name="git", level="problem", text=clean_line(answer.stdout), remedy=remedy)
    return Check(name="git", level="ok", text=clean_line(answer.stdout))


def check_store(engine: Engine) -> Iterator[Check]:
    """Check the store's directory, mode, free space and registry."""
    root = engine.store.root
    mode = stat.S_IMODE(root.stat().st_mode)
    free_bytes = shutil.disk_usage(root).free
    text = f"{root}, {spell_bytes(free_bytes)} free"
    if not os.access(root, os.W_OK):
        yield Check(
            name="store",
            level="problem",
            text=f"{text}, not writable",
            remedy=f"change the owner of {root}, or set UNCAGED_WORKFLOW_HOME",
        )
    elif mode & 0o077:
        yield Check(
            name="store",
            level="problem",
            text=f"{text}, accessible to other users (mode {mode:o})",
            remedy=f"chmod 700 {root}",
        )
    elif free_bytes < LEAST_FREE_BYTES:
        yield Check(
            name="store",
            level="problem",
            text=text,
            remedy="free some space: uncaged-workflow prune --older-than 30d",
        )
    else:
        yield Check(name="store", level="ok", text=text)
    snapshot = engine.registry.read()
    for problem in snapshot.problems:
        yield Check(
            name="registry",
            level="problem",
            text=problem,
            remedy=f"fix that entry in {engine.store.registry_path}",
        )
    if not snapshot.problems:
        yield Check(
            name="registry",
            level="ok",
            text=f"{len(snapshot.flows)} flow{'' if len(snapshot.flows) == 1 else 's'}",
        )


def check_sandboxes(engine: Engine) -> Iterator[Check]:
    """Start a process in each mechanism. One working mechanism is enough for bundles; scripts are
    checked separately.
    """
    outcomes = [_try_sandbox(name) for name in ("bubblewrap", "landlock")]
    working = [outcome.name for outcome in outcomes if outcome.level == "ok"]
    for outcome in outcomes:
        yield replace(outcome, level="note") if working and outcome.level == "problem" else outcome
    prefer = _setting(lambda: engine.config.sandbox)
    if prefer in ("bubblewrap", "landlock") and working and prefer not in working:
        yield Check(
            name="sandbox",
            level="problem",
            text=f"config.yaml sets sandbox: {prefer}, which does not work here",
            remedy="set sandbox: auto",
        )
    elif working:
        yield from _check_scripts(prefer or "auto")
    if os.geteuid() == 0:
        yield Check(
            name="user",
            level="note",
            text="running as root: bundles stay sandboxed; scripts run as a separate user, or are refused",
        )


def _try_sandbox(name: Literal["bubblewrap", "landlock"]) -> Check:
    """Start a bundle process in a mechanism; a failure has a remedy."""
    from uncaged_bundles.validation.validate import read_bundle
    from uncaged_engine.cells.cell import Cell
    from uncaged_engine.sandbox.mechanism import INSTALL, choose

    try:
        mechanism = choose(name)
        Cell.start(read_bundle(PROBE_BUNDLE), mechanism).close()
    except SandboxUnavailable as problem:
        return Check(
            name=name,
            level="problem",
            text=clean_line(problem.reason),
            remedy=problem.remedy or INSTALL,
        )
    except (UncagedError, OSError) as problem:
        return Check(name=name, level="problem", text=clean_line(str(problem)), remedy=INSTALL)
    which = (
        f"version {mechanism.landlock_abi}"
        if mechanism.program is None
        else f"{mechanism.program}, from {mechanism.origin}"
    )
    return Check(
        name=name,
        level="ok",
        text=f"{which}: a process started in it could not read, write, connect or fork",
    )


def _check_scripts(prefer: str) -> Iterator[Check]:
    """Yield a note if scripts cannot run."""
    from uncaged_engine.sandbox.mechanism import choose

    try:
        choose(prefer, scripts=True)
    except SandboxUnavailable as problem:
        yield Check(
            name="scripts", level="note", text=clean_line(problem.reason), remedy=problem.remedy
        )


def check_browsers() -> Iterator[Check]:
    """Yield a note about the browsers of the machine, which web flows need."""
    if not is_installed("browser"):
        return
    from uncaged_browser.browsers.installed import INSTALL, installed_browsers

    found = installed_browsers(os.environ)
    names = ", ".join(
        f"{one.product} {one.path}" + ("" if one.usable else " (not usable)") for one in found
    )
    if any(one.usable for one in found):
        yield Check(name="browser", level="ok", text=names)
    else:
        yield Check(name="browser", level="note", text=names or "none is installed", remedy=INSTALL)


def check_config_and_agents(engine: Engine) -> Iterator[Check]:
    """Check the configuration, then its agents."""
    try:
        config = engine.config
    except UncagedError as problem:
        yield Check(
            name="config",
            level="problem",
            text=str(problem),
            remedy=f"fix {engine.store.config_path}",
        )
        return
    written = engine.store.config_path.exists()
    yield Check(
        name="config",
        level="ok",
        text=str(config.path) if written else "no config.yaml; the defaults apply",
    )
    flows = engine.registry.read().flows
    for name in config.flows:
        if name not in flows:
            remedy = f"fix flows.{name} in {config.path}, or add the flow"
            yield Check(
                name="config",
                level="note",
                text=f"flows.{name}: no such flow{nearest(name, flows)}",
                remedy=remedy,
            )
    yield from _agents(config)


def _agents(config: Config) -> Iterator[Check]:
    """Create each configured agent as a run would, then choose the default agent."""
    if not is_installed("agents"):
        yield Check(
            name="agents",
            level="note",
            text="the package uncaged_agents is not installed: flows with roles do not run",
        )
        return
    from uncaged_agents.choose import default_agent
    from uncaged_agents.kinds import factory_of, kinds

    for name, agent in config.agents.items():
        try:
            factory_of(agent.use)(agent.settings)
        except UncagedError as problem:
            yield Check(
                name=name,
                level="problem",
                text=str(problem),
                remedy=f"fix agents.{name} in {config.path}",
            )
    installed = ", ".join((*config.agents, *kinds()))
    yield Check(name="agents", level="ok", text=f"available: {installed}")
    try:
        default = default_agent(config, os.environ, Path.cwd())
    except UncagedError:
        return  # reported above under its own name
    yield Check(
        name="agent", level="ok", text=f"{default.name} answers by default: {default.reason}"
    )


def _setting(read: Callable[[], str]) -> str:
    try:
        return read()
    except UncagedError:
        return ""
