"""`doctor` tries what this machine needs and says what to do about whatever fails."""

from __future__ import annotations

import click
from uncaged_bundles.errors import SandboxUnavailable

from ..display import jsonout
from ..display.screen import Styled, note, result
from ..given.arguments import json_option
from ..session import open_engine

COLOURS = {"ok": "green", "note": "yellow", "problem": "red"}
EXIT_PROBLEM = 1


@click.command()
@json_option
def command(as_json: bool) -> int:
    """Check this machine: store, git, sandboxes (by starting one process in each), configuration, agents."""
    from ..checks import machine_checks

    checks = []
    for check in machine_checks(open_engine()):
        checks.append(check)
        if not as_json:
            result(Styled(f"{check.level:<8}", COLOURS[check.level]), f"{check.name:<12}", check.text)
            if check.remedy:
                result(f"{'':<20}→ {check.remedy}")
    problems = {check.name for check in checks if check.level == "problem"}
    if as_json:
        jsonout.document([{"name": one.name, "level": one.level, "text": one.text, "remedy": one.remedy} for one in checks])
    elif problems:
        note(f"{len(problems)} problem{'' if len(problems) == 1 else 's'}: {', '.join(sorted(problems))}")
    if {"bubblewrap", "landlock"} <= problems:
        return SandboxUnavailable.exit_code
    return EXIT_PROBLEM if problems else 0
