"""Conversion of a recipe's sandbox to the limits of the script effect. Absent entries are inferred,
with a note.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from uncaged_bundles import hosts, shapes
from uncaged_bundles.hosts import HOST_NETWORK
from uncaged_bundles.limits import tolerated
from uncaged_bundles.shapes import Path, ShapeError

from ..inference.inference import infer_commands

LONGEST_S = 24 * 3600.0
COMMAND_KEYS = ("allowedCmdlets", "allowedCommands")
SANDBOX_KEYS = frozenset(
    {
        *COMMAND_KEYS,
        "allowedPaths",
        "writePaths",
        "allowedModules",
        "maxExecutionTime",
        "networkAccess",
        "allowedDomains",
        "environment",
    }
    | {"privateNetwork", "tolerate"}
)


def read_sandbox(
    raw: object, language: str, body: str, parameters: Mapping[str, object], path: Path
) -> tuple[dict[str, object], tuple[str, ...]]:
    """Return the limits of the script effect for a recipe's sandbox, and notes about inferred
    ones.
    """
    sandbox = shapes.mapping(raw or {}, path)
    shapes.known_keys(sandbox, SANDBOX_KEYS, path)
    named = [key for key in COMMAND_KEYS if key in sandbox]
    commands = [name for key in named for name in shapes.texts(sandbox[key], (*path, key))]
    needed = infer_commands(language, body)
    notes: tuple[str, ...] = ()
    if not named and needed:
        commands = list(needed)
        notes = (f"the script seems to need the commands {', '.join(needed)}; they are asked for",)
    elif lacking := [name for name in needed if name not in commands]:
        notes = (
            f"the script seems to need {', '.join(lacking)}, which the sandbox does not allow; see allowedCommands",
        )
    policy: dict[str, object] = {"executables": list(dict.fromkeys(commands))} if commands else {}
    if "allowedPaths" not in sandbox and (paths := path_parameters(parameters)):
        policy["read"] = paths
    for key, limit in (
        ("allowedPaths", "read"),
        ("writePaths", "write"),
        ("allowedModules", "modules"),
        ("environment", "environment"),
    ):
        values = shapes.texts(sandbox.get(key, []), (*path, key))
        if values:
            policy[limit] = (
                [portable_path(value) for value in values] if limit in ("read", "write") else values
            )
    policy |= _network(sandbox, path)
    if "tolerate" in sandbox:
        policy["tolerate"] = tolerated(sandbox["tolerate"], (*path, "tolerate"))
    if "maxExecutionTime" in sandbox:
        limit_s = shapes.positive(sandbox["maxExecutionTime"], (*path, "maxExecutionTime"))
        if limit_s > LONGEST_S:
            raise ShapeError(
                (*path, "maxExecutionTime"), f"is in seconds, and at most {LONGEST_S:.0f} of them"
            )
        policy["timeout_s"] = limit_s
    return policy, notes


def _network(sandbox: Mapping[str, object], path: Path) -> dict[str, object]:
    """Return the limits for the network."""
    domains = shapes.texts(sandbox.get("allowedDomains", []), (*path, "allowedDomains"))
    hosts.check_entries(domains, (*path, "allowedDomains"))
    access = sandbox.get("networkAccess", False)
    if access == HOST_NETWORK:
        return {"network": HOST_NETWORK}
    if not (shapes.truth(access, (*path, "networkAccess")) or domains):
        return {}
    private = shapes.truth(sandbox.get("privateNetwork", False), (*path, "privateNetwork"))
    return {"network": domains or ["*"], **({"private": True} if private else {})}


def path_parameters(parameters: Mapping[str, object]) -> list[str]:
    """Return the entries that let a script read the paths of its path parameters."""
    properties = parameters.get("properties", {})
    named = properties.items() if isinstance(properties, Mapping) else ()
    return [
        f"param:{name}"
        for name, part in named
        if isinstance(part, Mapping) and part.get("format") == "path"
    ]


def portable_path(text: str) -> str:
    """Return a path in this system's form: ``$env:USERPROFILE\\Documents\\*`` is
    ``$HOME/Documents``.
    """
    if "$env:" in text.lower() or "\\" in text:
        text = re.sub(r"\$env:", "$", text, flags=re.IGNORECASE).replace("\\", "/")
        text = re.sub(r"\$USERPROFILE\b", "$HOME", text).replace("$TEMP", "$TMPDIR")
    return re.sub(r"(?<=.)/\*+$", "", text)
