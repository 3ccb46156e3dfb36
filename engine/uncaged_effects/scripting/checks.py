"""Static checks of a script's text against its policy, with line and column in each message.

They give early, clear refusals; the sandbox enforces the policy.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from uncaged_bundles.syntax import parse_module
from uncaged_engine.services import secrets
from uncaged_engine.services.sandbox import Refused

from .spec import declared

if TYPE_CHECKING:
    from uncaged_bundles.limits import ScriptLimits

NEVER_CMDLETS = frozenset(
    {
        "invoke-expression",
        "add-type",
        "set-executionpolicy",
        "register-scheduledtask",
        "register-objectevent",
        "register-engineevent",
    }
    | {
        "register-wmievent",
        "unregister-scheduledtask",
        "unregister-event",
        "enable-psremoting",
        "enter-pssession",
        "new-pssession",
    }
    | {"start-process", "new-object"}
)
_CMDLET = re.compile(r"(?<![\w$.'\"-])([A-Z][A-Za-z]+-[A-Z][A-Za-z0-9]+)\b")


def check_text(language: str, text: str, limits: ScriptLimits) -> None:
    """Check the text of a script.

    Raises:
        Refused: it uses a module or cmdlet that the policy does not allow. ValueError: it is no
            Python.
    """
    if language == "python":
        check_imports(text, limits.modules)
    elif language == "powershell":
        check_cmdlets(text, limits.executables)


def check_secrets(parameters: Mapping[str, object], limits: ScriptLimits) -> None:
    """Refuse a secret that is not bound to all commands that could read it; raises Refused."""
    for name, value in parameters.items():
        if not (isinstance(value, str) and value.startswith(secrets.PREFIX)):
            continue
        secret = value.removeprefix(secrets.PREFIX)
        bound = limits.secrets.get(secret)
        commands = limits.executables
        if bound is None:
            raise Refused(
                f"parameter {name!r} is {value}, which the policy does not name; {declared('secrets', {secret: list(commands)})}"
            )
        if beyond := [command for command in commands if command not in bound]:
            raise Refused(
                f"{value} is bound to {', '.join(bound) or 'no command'}, but the script may also start {', '.join(beyond)}"
            )


def check_imports(text: str, allowed: Sequence[str]) -> None:
    """Refuse imports of modules that are neither in the standard library nor in the policy."""
    try:
        tree = parse_module(text)
    except SyntaxError as exc:
        raise ValueError(
            f"line {exc.lineno or 1}, column {max(exc.offset or 1, 1)}: not Python: {exc.msg}"
        ) from exc
    except (ValueError, RecursionError, MemoryError) as exc:
        raise ValueError(f"the script cannot be read: {exc}") from exc
    for node, module in sorted(
        _imports(tree), key=lambda entry: (entry[0].lineno, entry[0].col_offset)
    ):
        top = module.partition(".")[0]
        if top not in sys.stdlib_module_names and not any(
            module == name or module.startswith(f"{name}.") for name in allowed
        ):
            where = f"line {node.lineno}, column {node.col_offset + 1}"
            raise Refused(
                f"{where}: the module {module!r} is not among the policy's modules; {declared('modules', [top])}"
            )


def _imports(tree: ast.Module) -> Iterator[tuple[ast.stmt | ast.expr, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node, alias.name) for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield node, module
            case ast.Call(
                func=ast.Name(id="__import__") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node, name
            case _:
                pass


def check_cmdlets(text: str, allowed: Sequence[str]) -> None:
    """Refuse cmdlets that are not among the policy's executables, and some always."""
    own = {name.lower() for name in re.findall(r"\bfunction\s+([\w-]+)", text, re.IGNORECASE)}
    listed = {name.lower() for name in allowed}
    for number, line in enumerate(text.split("\n"), 1):
        for match in _CMDLET.finditer(line.partition("#")[0]):
            name, where = match[1], f"line {number}, column {match.start() + 1}"
            if name.lower() in NEVER_CMDLETS:
                raise Refused(f"{where}: the cmdlet {name!r} is never run here")
            if name.lower() not in listed | own:
                raise Refused(
                    f"{where}: the cmdlet {name!r} is not among the policy's executables; {declared('executables', [name])}"
                )
