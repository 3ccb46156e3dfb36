"""Import lines of a bundle: sorted, each once, and only of modules that a bundle may import."""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from uncaged_bundles.contract import ALLOWED_MODULES
from uncaged_bundles.errors import BundleError
from uncaged_bundles.validation.modules import advice


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Import:
    """One name that an import binds.

    level: the number of dots before the module. name: empty for ``import module``.
    """

    level: int
    module: str
    name: str
    alias: str

    @classmethod
    def of(cls, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> Import:
        if isinstance(node, ast.Import):
            return cls(level=0, module=alias.name, name="", alias=alias.asname or "")
        asname = "" if alias.asname == alias.name else alias.asname or ""
        return cls(level=node.level, module=node.module or "", name=alias.name, alias=asname)

    @property
    def bound(self) -> str:
        return self.alias or self.name or self.module.partition(".")[0]

    @property
    def spelling(self) -> str:
        return (self.name or self.module) + (f" as {self.alias}" if self.alias else "")


def is_standard(module: str) -> bool:
    """Tell whether *module* is of the standard library, and not a file of the author with the same
    name.
    """
    top = module.partition(".")[0]
    if top not in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    if file is None:  # built in, frozen, or not loaded
        return True
    homes = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
    return any(Path(file).is_relative_to(home) for home in homes)


def is_installed(file: str) -> bool:
    """Tell whether *file* belongs to an installed package, not to a working copy."""
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


def check_allowed(entry: Import, place: str, *, trusted: bool) -> None:
    """Refuse a standard module that a bundle may not import, with advice what to use instead."""
    full = f"{entry.module}.{entry.name}" if entry.name else entry.module
    if not trusted and entry.module not in ALLOWED_MODULES and full not in ALLOWED_MODULES:
        raise BundleError(f"{place}: import of {entry.module!r}: {advice(entry.module)}")


def write_imports(entries: Iterable[Import]) -> list[str]:
    """Return the import lines: ``__future__``, whole modules, then names, each in alphabetical
    order.
    """
    names: dict[str, list[str]] = {}
    lines = []
    for entry in sorted(set(entries)):
        if entry.name:
            names.setdefault(entry.module, []).append(entry.spelling)
        else:
            lines.append(f"import {entry.spelling}")
    future = names.pop("__future__", [])
    first = (
        [f"from __future__ import {', '.join(future)}", *([""] if lines or names else [])]
        if future
        else []
    )
    return [
        *first,
        *lines,
        *(f"from {module} import {', '.join(spellings)}" for module, spellings in names.items()),
    ]
