"""Command that is not on this machine, with one of the same family that is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..candidates import FixCandidate
from ..case import LACKING, FixCase
from ..machine import Machine

__all__ = ["candidates"]

MISSING = re.compile(r"the script needs '(?P<name>[\w.+-]+)', which is not on the PATH")
NOT_FOUND = re.compile(r"(?P<name>[\w.+-]+): (?:command )?not found")
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "python": ("python3",),
    "python3": ("python",),
    "pip": ("pip3",),
    "pip3": ("pip",),
    "node": ("nodejs",),
    "nodejs": ("node",),
    "fd": ("fdfind",),
    "fdfind": ("fd",),
    "bat": ("batcat",),
    "batcat": ("bat",),
    "egrep": ("grep -E",),
    "fgrep": ("grep -F",),
    "gawk": ("awk",),
    "mawk": ("awk",),
    "nawk": ("awk",),
    "gmake": ("make",),
    "7z": ("7zz", "7za"),
    "7za": ("7z", "7zz"),
    "mysql": ("mariadb",),
    "mysqldump": ("mariadb-dump",),
    **{
        f"g{name}": (name,)
        for name in (
            *("cat", "cut", "date", "du", "find", "grep", "head", "ls", "md5sum", "readlink"),
            *("realpath", "sed", "seq", "sha256sum", "shuf", "sort", "split", "stat", "tail"),
            *("tar", "timeout", "tr", "uniq", "wc", "xargs"),
        )
    },
}
"""Commands that do the same with the same options, by the missing one."""


def candidates(case: FixCase, machine: Machine) -> Iterator[FixCandidate | str]:
    """Yield the flow with the other command in the script and in the policy."""
    if case.failed is None or case.language != "bash":
        return
    found = MISSING.search(case.failed.message) if case.failed.word == LACKING else None
    found = found or NOT_FOUND.search(case.failed.message)
    if found is None or machine.has(found["name"]):
        return
    name = found["name"]
    others = [one for one in FAMILIES.get(name, ()) if machine.has(one.split()[0])]
    if not others:
        yield f"the command {name!r} is not on this machine, and no other of its family is"
    for other in others:
        program = other.split()[0]
        text, count = re.subn(rf"(?<![\w./$-]){re.escape(name)}(?![\w./=-])", other, case.text)
        allowed = [one for one in case.limits("script").get("executables", []) if one != name]
        if count == 0:
            yield f"the command {name!r} is missing, and the script names it in no plain way"
            continue
        changed = case.with_limits("script", executables=list(dict.fromkeys([*allowed, program])))
        recipe = {**changed, "script": {**changed["script"], "body": text}}
        why = f"the command {name!r} is not on this machine; {other!r} is, and does the same"
        yield FixCandidate(kind="missing-command", recipe=recipe, why=why)
