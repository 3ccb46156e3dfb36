"""A bundle that passes here imports only what computes: the allowed list, by name, and of each
module only what replays alike.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .findings import Finding, first
from .modules import ALLOWED_MODULES, LEAKED_MODULES, MEMBER_REFUSALS, advice

_HOLD_STATEMENTS = ("body", "orelse", "finalbody", "handlers", "cases")


def forbidden_import(tree: ast.Module) -> Finding | None:
    """The first import, by position, that is outside the allowed list."""
    return first(_import_findings(tree))


def imported_names(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for: ``{"dt": "datetime.datetime"}``."""
    names: dict[str, str] = {}
    for node in _imports(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
        else:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def member_refusal(full: str) -> str | None:
    """Why this member of an allowed module is refused; None when it is not."""
    if full in MEMBER_REFUSALS:
        return f"{full!r} is refused: {MEMBER_REFUSALS[full]}"
    if full.startswith("random.") and full.split(".")[1] != "Random":
        return f'{full!r} is refused: its state is shared between threads; use random.Random(options["seed"])'
    module, _, name = full.rpartition(".")
    is_private = name in LEAKED_MODULES or (name.startswith("_") and not name.startswith("__"))
    if is_private and module in ALLOWED_MODULES:
        return f"{full!r} is refused: it is no public part of {module!r}"
    return None


def _import_findings(tree: ast.Module) -> Iterator[Finding]:
    for node in _imports(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name not in ALLOWED_MODULES:
                    yield Finding.at(node, f"import of {alias.name!r}: {advice(alias.name)}")
        else:
            for alias in node.names:
                if message := _from_refusal(node.level, node.module or "", alias.name):
                    yield Finding.at(node, message)


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import statement, in functions and branches too. Statements stand in statements only,
    so expressions are passed over.
    """
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
            continue
        for name in _HOLD_STATEMENTS:
            waiting.extend(getattr(node, name, None) or ())


def _from_refusal(level: int, module: str, name: str) -> str | None:
    if level:
        return "relative import: a bundle is one file; carry what you need inside it"
    if f"{module}.{name}" in ALLOWED_MODULES:
        return None
    if module not in ALLOWED_MODULES:
        return f"import from {module!r}: {advice(module)}"
    if name == "*":
        return f"import of everything from {module!r}: name what you use"
    return member_refusal(f"{module}.{name}")
