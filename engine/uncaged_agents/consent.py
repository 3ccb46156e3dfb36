"""Consent to coding programs on PATH: a person is asked once, and the answer is kept in the
config.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from uncaged_bundles.errors import UsageError
from uncaged_engine.services.settings import Config

from .program.table import ProgramRow, table

NO = "not "
"""Prefix of a name in ``consent`` that the user refused."""


def installed_programs(environment: Mapping[str, str]) -> list[ProgramRow]:
    """Return the coding programs on PATH in the table's order. Of several ways to run one the first
    counts.
    """
    found: dict[str, ProgramRow] = {}
    for row in table().values():
        program = row.program_on(environment.get("PATH", ""))
        if program is not None:
            found.setdefault(program, row)
    return list(found.values())


def consented_program(config: Config, environment: Mapping[str, str]) -> ProgramRow | None:
    """Return the first program on PATH that has the person's consent, in the order of the
    config.
    """
    rows = table()
    path = environment.get("PATH", "")
    return next(
        (
            rows[name]
            for name in config.consent
            if name in rows and rows[name].program_on(path) is not None
        ),
        None,
    )


def undecided_program(config: Config, environment: Mapping[str, str]) -> ProgramRow | None:
    """Return the first program on PATH without an answer; None if there is a consented one."""
    if consented_program(config, environment) is not None:
        return None
    refused = {name.removeprefix(NO) for name in config.consent}
    return next((row for row in installed_programs(environment) if row.name not in refused), None)


def record_consent(path: Path, name: str, *, yes: bool) -> None:
    """Write the answer into ``config.yaml``; its other lines are unchanged.

    Raises:
        UsageError: the file is no valid config. RefusedError: another process is changing it.
    """
    from uncaged_engine.services.settings import change_setting

    word = name if yes else f"{NO}{name}"
    try:
        change_setting(path, "consent", lambda config: [*config.consent, word])
    except UsageError as exc:
        raise UsageError(f"the answer cannot be kept: {exc}") from exc
