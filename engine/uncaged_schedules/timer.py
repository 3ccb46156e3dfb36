"""Timer of the system that runs `due` every minute: units of the user's systemd, or a line for
crontab.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from _blake2 import blake2b
from collections.abc import Mapping, Sequence
from pathlib import Path

from uncaged_bundles.errors import EnvironmentLacks
from uncaged_bundles.records import dataclass
from uncaged_bundles.storage.files import write_atomically
from uncaged_bundles.storage.store import HOME_VARIABLE, Store

__all__ = ["BOOTED", "Timer", "has_user_systemd", "install", "timer_of"]

BOOTED = Path("/run/systemd/system")
"""There if systemd is the machine's init; see sd_booted(3)."""
SYSTEMCTL_S = 30.0
UNIT = "uncaged-workflow-due"
SERVICE = """\
[Unit]
Description=Start due schedules and resume sleeping threads of uncaged-workflow

[Service]
Type=oneshot
# the workers that it starts outlive it
KillMode=process
{environment}
ExecStart={command}
"""
TIMER = """\
[Unit]
Description=Look for due schedules of uncaged-workflow every minute

[Timer]
OnCalendar=minutely
AccuracySec=1s

[Install]
WantedBy=timers.target
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timer:
    """A timer in both forms. name: of the units, without suffix. service, timer: their texts.
    cron_line: a line for `crontab -e`.
    """

    name: str
    service: str
    timer: str
    cron_line: str


def timer_of(store: Store, command: Sequence[str], environment: Mapping[str, str]) -> Timer:
    """Return the timer of a store.

    Args:
        command: runs the command line, without a verb. environment: PATH and the store's variable
            are taken from it.
    """
    variables = {name: environment[name] for name in ("PATH",) if environment.get(name)}
    variables[HOME_VARIABLE] = str(store.root)
    words = [*command, "due"]
    digest = blake2b(os.fsencode(store.root), digest_size=4).hexdigest()
    settings = [f"Environment={_quoted(f'{name}={value}')}" for name, value in variables.items()]
    assignments = [f"{name}={value}" for name, value in variables.items()]
    line = shlex.join(["env", *assignments, *words])
    return Timer(
        name=f"{UNIT}-{digest}",
        service=SERVICE.format(
            environment="\n".join(settings),
            command=" ".join(_quoted(word).replace("$", "$$") for word in words),
        ),
        timer=TIMER,
        cron_line=f"* * * * * {line} >/dev/null".replace("%", r"\%"),
    )


def has_user_systemd(booted: Path = BOOTED) -> bool:
    """Return whether this user has a service manager of systemd that can be asked."""
    if not booted.is_dir() or shutil.which("systemctl") is None:
        return False
    return _systemctl("show-environment").returncode == 0


def install(timer: Timer, directory: Path) -> list[Path]:
    """Write the units to *directory*, and start the timer now and at each login.

    Raises:
        EnvironmentLacks: systemd refuses them.
    """
    directory.mkdir(parents=True, exist_ok=True)
    service = directory / f"{timer.name}.service"
    unit = directory / f"{timer.name}.timer"
    write_atomically(service, timer.service.encode())
    write_atomically(unit, timer.timer.encode())
    for words in (("daemon-reload",), ("enable", "--now", unit.name)):
        done = _systemctl(*words)
        if done.returncode != 0:
            raise EnvironmentLacks(
                f"systemctl --user {' '.join(words)} failed: {done.stderr.strip()[-500:]}",
                remedy="correct that, or use the cron line of `schedule install --print`",
            )
    return [service, unit]


def _systemctl(*words: str) -> subprocess.CompletedProcess[str]:
    command = ["systemctl", "--user", *words]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=SYSTEMCTL_S
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"no answer in {SYSTEMCTL_S:g} s")


def _quoted(text: str) -> str:
    """Quote a word for a unit file, where % begins a specifier."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
