"""A file given to `add` or `build` is either a bundle, taken to the byte, or a definition, which is built."""

from __future__ import annotations

import ast
from pathlib import Path

from uncaged_bundles.errors import NotFoundError, UsageError

AUTHORING = ("uncaged_bundles", "uncaged_roles")
"""A definition imports from these; a bundle imports nothing of this project."""


def bundle_source(file: Path) -> tuple[bytes, bool]:
    """Return a bundle's bytes, and whether they had to be built."""
    try:
        source = file.read_bytes()
    except FileNotFoundError as problem:
        raise NotFoundError(f"no file {str(file)!r}") from problem
    except OSError as problem:
        raise UsageError(f"{str(file)!r} cannot be read: {problem.strerror}") from problem
    if not is_definition(source):
        return source, False
    from uncaged_bundles.build.definition import build_definition
    from uncaged_engine.known_effects import KNOWN

    return build_definition(file, KNOWN), True


def is_definition(source: bytes) -> bool:
    """Whether the file is written with our authoring package; anything else is a bundle, or wrong as one."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(_imports_ours(node) for node in tree.body)


def _imports_ours(node: ast.stmt) -> bool:
    match node:
        case ast.Import(names=names):
            return any(name.name.split(".")[0] in AUTHORING for name in names)
        case ast.ImportFrom(module=str(module), level=0):
            return module.split(".")[0] in AUTHORING
        case _:
            return False
