"""Import rules of bundles: only modules of the allowlist, and of each module only deterministic
members.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .findings import Finding, first
from .modules import ALLOWED_MODULES, LEAKED_MODULES, MEMBER_REFUSALS, advice

_STATEMENT_FIELDS = ("body", "orelse", "finalbody", "handlers", "cases")


def forbidden_import(tree: ast.Module) -> Finding | None:
    """Return a finding at the first import, by position, that is not allowed."""
    return first(_import_findings(tree))


def imported_names(tree: ast.Module) -> dict[str, str]:
    """Return the qualified name of each imported name: ``{"dt": "datetime.datetime"}``."""
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
    """Return why a member of an allowed module is refused; None if it is not."""
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
    """Yield every import statement, in functions and branches too. Only statements contain
    statements, so expressions are skipped.
    """
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
            continue
        for name in _STATEMENT_FIELDS:
            pending.extend(getattr(node, name, None) or ())


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
