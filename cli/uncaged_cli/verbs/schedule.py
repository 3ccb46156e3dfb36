"""The verb `schedule`: adds, shows, enables, disables and removes schedules of flows, and sets up
the timer that starts them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from ..display import json_output
from ..display.output import next_step, note, result
from ..inputs.options import (
    agent_option,
    flow_argument,
    json_option,
    limit_options,
    parameter_options,
    parse_agents,
)
from ..inputs.parameters import gather
from ..inputs.stores import shared_option
from ..runtime import now_ms, open_engine, own_command

if TYPE_CHECKING:
    from uncaged_schedules.schedule import Schedule
    from uncaged_schedules.timer import Timer


def complete_schedules(
    _context: click.Context, _parameter: click.Parameter | None, incomplete: str
) -> list[CompletionItem]:
    """Return the names of schedules that begin with the typed text."""
    from uncaged_schedules.changes import list_schedules

    found = list_schedules(open_engine()).schedules
    return [CompletionItem(one.name) for one in found if one.name.startswith(incomplete)]


name_argument = click.argument("name", metavar="NAME", shell_complete=complete_schedules)


@click.group("schedule")
def command() -> None:
    """Start flows at the times of a cron expression. `due` starts what is due; a timer runs it, or
    `serve`. `schedules` lists the schedules.
    """


@command.command("add", short_help="Start a flow at the times of a cron expression.")
@flow_argument
@click.argument("cron", metavar="CRON")
@click.option(
    "--timezone",
    metavar="ZONE",
    help="The time zone of CRON, such as Europe/Berlin (default: this machine's).",
)
@parameter_options
@click.option("--prompt", default="", metavar="TEXT", help="The task.")
@click.option("--name", metavar="NAME", help="The name of the schedule (default: the flow's).")
@click.option(
    "--missed",
    type=click.Choice(["once", "skip"]),
    default="once",
    help="Due times that passed while nothing looked: start one thread for all of them, or none (default: once).",
)
@click.option(
    "--workspace",
    type=click.Path(path_type=Path),
    callback=lambda _context, _parameter, value: value and value.absolute(),
    metavar="DIR",
    help="The repository to work on (default: the current directory).",
)
@agent_option
@limit_options
@shared_option
@json_option
def add_schedule(
    *,
    flow: str,
    cron: str,
    timezone: str | None,
    pairs: tuple[str, ...],
    params_file: Path | None,
    prompt: str,
    name: str | None,
    missed: Any,
    workspace: Path | None,
    agents: tuple[str, ...],
    as_json: bool,
    **limits: Any,
) -> None:
    """Start FLOW at each time of CRON: five fields (minute, hour, day, month, weekday), or @hourly,
    @daily or @midnight, @weekly, @monthly, @yearly or @annually.

    The version of the flow is the one that is current when a thread starts. Threads run in the
    current directory, with the environment of the timer.

    \b
    Examples:
      uncaged-workflow schedule add count-lines '30 7 * * mon-fri' --timezone Europe/Berlin
      uncaged-workflow schedule add solve-issue @daily --workspace shop --prompt "fix a warning"
    """
    from uncaged_schedules.changes import add
    from uncaged_schedules.schedule import LIMITS

    engine = open_engine()
    schedule = add(
        engine,
        flow,
        cron,
        name=name,
        timezone=timezone,
        missed=missed,
        prompt=prompt,
        params=gather(params_file, pairs, engine.bundle(flow).descriptor.parameters),
        workspace=workspace,
        agents=parse_agents(agents),
        limits={key: limits[option] for key, option in LIMITS.items()},
    )
    show_one(schedule, as_json=as_json)
    if as_json:
        return
    if engine.is_shared:
        note("a running 'serve' of this store starts it, or 'due' that a timer runs")
    else:
        note("a timer starts it: 'uncaged-workflow schedule install' sets one up; so does 'serve'")


@command.command("show", short_help="Show a schedule.")
@name_argument
@shared_option
@json_option
def show_schedule(name: str, as_json: bool) -> None:
    """Show a schedule with its parameters, its next due time and its last thread."""
    from uncaged_schedules.changes import find

    show_one(find(open_engine(), name), as_json=as_json)


@command.command("rm", short_help="Remove a schedule.")
@name_argument
@shared_option
@json_option
def remove_schedule(name: str, as_json: bool) -> None:
    """Remove a schedule; its threads stay."""
    from uncaged_schedules.changes import remove

    remove(open_engine(), name)
    if as_json:
        json_output.document({"schedule": name, "removed": True})
        return
    result(f"removed {name}")


@command.command("enable", short_help="Enable a schedule.")
@name_argument
@shared_option
@json_option
def enable_schedule(name: str, as_json: bool) -> None:
    """Enable a schedule. Due times that passed while it was disabled are not caught up."""
    from uncaged_schedules.changes import set_enabled

    show_one(set_enabled(open_engine(), name, enabled=True), as_json=as_json)


@command.command("disable", short_help="Disable a schedule.")
@name_argument
@shared_option
@json_option
def disable_schedule(name: str, as_json: bool) -> None:
    """Disable a schedule: it starts no threads until it is enabled."""
    from uncaged_schedules.changes import set_enabled

    show_one(set_enabled(open_engine(), name, enabled=False), as_json=as_json)


@command.command("install", short_help="Set up the timer that runs `due`.")
@click.option("--print", "only_print", is_flag=True, help="Print the timer and change nothing.")
@json_option
def install_timer(*, only_print: bool, as_json: bool) -> None:
    """Set up a timer of your systemd that runs `due` every minute; where there is none, print the
    line for cron.

    The timer has the PATH of this command and its store. It runs while you are logged in; with
    `loginctl enable-linger`, from the start of the machine.
    """
    from uncaged_schedules.timer import has_user_systemd, install, timer_of

    timer = timer_of(open_engine().store, own_command(), os.environ)
    if only_print or not has_user_systemd():
        print_timer(timer, only_print=only_print, as_json=as_json)
        return
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    paths = install(timer, home / "systemd" / "user")
    if as_json:
        json_output.document({"name": timer.name, "files": list(map(str, paths))})
        return
    for path in paths:
        result(f"wrote {path}")
    next_step(f"systemctl --user list-timers {timer.name}.timer")
    note(f"'systemctl --user disable --now {timer.name}.timer' ends it")


def print_timer(timer: Timer, *, only_print: bool, as_json: bool) -> None:
    """Print the units and the cron line, or the line alone where there is no systemd."""
    if as_json:
        json_output.document(
            {
                "name": timer.name,
                "service": timer.service,
                "timer": timer.timer,
                "cronLine": timer.cron_line,
            }
        )
        return
    if only_print:
        result(f"# {timer.name}.service\n{timer.service}")
        result(f"# {timer.name}.timer\n{timer.timer}")
        result("# without systemd, a line for crontab")
    else:
        note("there is no systemd for this user; add this line with 'crontab -e':")
    result(timer.cron_line)


def show_one(schedule: Schedule, *, as_json: bool) -> None:
    """Print a schedule."""
    from ..display.schedule_list import schedule_document, spell_next

    now = now_ms()
    if as_json:
        json_output.document(schedule_document(schedule, now))
        return
    lines = {
        "schedule": schedule.name,
        "flow": schedule.flow,
        "cron": f"{schedule.timing.cron} ({schedule.timing.timezone})",
        "next": spell_next(schedule, now),
        "missed": schedule.missed,
        "prompt": schedule.prompt,
        **{f"param {name}": str(value) for name, value in schedule.params.items()},
        **{f"agent {role}".strip(): agent for role, agent in schedule.agents.items()},
        **{name: str(value) for name, value in schedule.limits.items()},
        "directory": str(schedule.directory),
        "workspace": str(schedule.workspace or ""),
        "last thread": schedule.thread_id or "",
        "problem": schedule.problem,
    }
    width = max(map(len, lines))
    for name, value in lines.items():
        if value:
            result(f"{name:<{width}}  {value}")
