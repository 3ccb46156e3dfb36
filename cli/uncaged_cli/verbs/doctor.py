"""The verb `doctor`: checks what this machine needs, and prints a remedy for each failure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
from uncaged_bundles.errors import SandboxUnavailable

from ..display import json_output
from ..display.output import Styled, note, result
from ..inputs.options import json_option
from ..runtime import open_engine

if TYPE_CHECKING:
    from uncaged_engine.api import Engine

    from ..machine_checks import Check

COLOURS = {"ok": "green", "note": "yellow", "problem": "red"}
EXIT_PROBLEM = 1


@click.command()
@click.option(
    "--live",
    is_flag=True,
    help="Also try each configured or default agent, with at most one short request.",
)
@json_option
def command(live: bool, as_json: bool) -> int:
    """Check this machine: store, git, sandboxes (by starting a process in each), configuration, and
    missing keys, programs or files of agents.

    With --live each agent is tried: a model or a headless program is asked for one word, which may
    cost a little; an agent of the Agent Client Protocol opens a session; commands and people are
    not asked. Each trial ends after one minute.
    """
    checks: list[Check] = []
    for check in every_check(open_engine(of_machine=True), live=live):
        checks.append(check)
        if not as_json:
            result(
                Styled(f"{check.level:<8}", COLOURS[check.level]), f"{check.name:<11} ", check.text
            )
            if check.remedy:
                result(f"{'':<20}→ {check.remedy}")
    problems = {check.name for check in checks if check.level == "problem"}
    if as_json:
        json_output.document([one.document() for one in checks])
    elif problems:
        note(
            f"{len(problems)} problem{'' if len(problems) == 1 else 's'}: {', '.join(sorted(problems))}"
        )
    if {"bubblewrap", "landlock"} <= problems:
        return SandboxUnavailable.exit_code
    return EXIT_PROBLEM if problems else 0


def every_check(engine: Engine, *, live: bool) -> Iterator[Check]:
    """Yield the checks of the machine, then of the agents, except agents whose settings are
    invalid.
    """
    from ..agent_checks import agent_checks, live_checks
    from ..catalog import is_installed
    from ..machine_checks import machine_checks

    wrong = set()
    for check in machine_checks(engine):
        if check.level == "problem":
            wrong.add(check.name)
        yield check
    if not is_installed("agents"):
        return
    yield from (
        check
        for check in (live_checks if live else agent_checks)(engine)
        if check.name not in wrong
    )
