"""Flow sources of `add`, `build` and `edit`: a bundle is used as it is; a definition, recipe or
script is built.
"""

from __future__ import annotations

import ast
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from uncaged_bundles.errors import BundleError, UsageError
from uncaged_bundles.syntax import parse_module

from .files import decode_text, read_bytes

if TYPE_CHECKING:
    from uncaged_bundles.builders.recipes.flows import RecipeFlow

AUTHORING = ("uncaged_bundles", "uncaged_roles")
"""Packages that a definition imports and a bundle does not."""
MAX_FILE_BYTES = 8 << 20
SCRIPT_SUFFIXES = (".sh", ".bash", ".ps1")
MAX_SCRIPT_BYTES = 100 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSource:
    """The bytes of a bundle and their origin.

    built: they were built here. active: False for a block flow that declares itself disabled.
    notes: lines to show to the user.
    """

    source: bytes
    built: bool = False
    active: bool = True
    notes: tuple[str, ...] = ()


def bundle_source(file: Path, name: str | None = None) -> FlowSource:
    """Return the bundle of *file*.

    Args:
        name: the flow's name, for a recipe or a script; by default the name in the file or of the
            file.
    Raises:
        NotFoundError, UsageError, BundleError: the file is missing, empty, too large, of an unknown
            kind, or invalid.
    """
    data = read_flow(file)
    match file.suffix.lower():
        case ".json":
            return _built(lambda: _from_recipe(data, file), name)
        case suffix if suffix in SCRIPT_SUFFIXES:
            return _built(lambda: read_script(data, file, name), name)
        case ".py" | "":
            kind = kind_of(data)
            if kind == "script" and file.suffix:
                return _built(lambda: read_script(data, file, name), name)
            if kind == "definition":
                from uncaged_bundles.builders.definition import build_definition
                from uncaged_engine.effect_kinds import KNOWN

                return FlowSource(source=build_definition(file, KNOWN), built=True)
            return FlowSource(source=data)
        case ".js" | ".mjs":
            raise UsageError(
                f"{str(file)!r} is a JavaScript bundle and is not run. Write its roles and moderator as a Python definition "
                f"('uncaged-workflow init DIRECTORY' writes an example), or its steps as a bundle (docs/bundles.md), "
                f"then: uncaged-workflow add NAME FILE.py"
            )
        case suffix:
            if b"descriptor" in data and kind_of(data) == "bundle":
                return FlowSource(source=data)
            raise UsageError(
                f"{str(file)!r} is not a flow: the suffix {suffix} is not one of .py, .json, .sh, .bash and .ps1"
            )


def read_flow(file: Path) -> bytes:
    """Return the bytes of a flow file without a byte order mark; the rest is hashed and stored."""
    data = read_bytes(file, max_bytes=MAX_FILE_BYTES).removeprefix(BOM_UTF8)
    if not data.strip():
        raise UsageError(f"{str(file)!r} is empty")
    return data


@contextmanager
def in_file(file: Path) -> Iterator[None]:
    """Prefix a BundleError with the name of the file."""
    try:
        yield
    except BundleError as problem:
        raise BundleError(f"{file}: {problem}") from problem


def kind_of(source: bytes) -> str:
    """Classify a Python file as ``definition``, ``bundle`` (also an invalid one) or ``script``."""
    try:
        tree = parse_module(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "bundle"
    if any(_imports_ours(node) for node in tree.body):
        return "definition"
    if any(_is_bundle_statement(node) for node in tree.body) or not _has_statements(tree):
        return "bundle"
    return "script"


def read_script(data: bytes, file: Path, name: str | None) -> RecipeFlow:
    """Return the flow of a script file."""
    from uncaged_bundles.builders.recipes.recipe import safe_name
    from uncaged_bundles.builders.recipes.recipe_flow import read_script_file

    if len(data) > MAX_SCRIPT_BYTES:
        raise UsageError(
            f"{str(file)!r} has {len(data):,} bytes; a script has at most {MAX_SCRIPT_BYTES:,}"
        )
    text = decode_text(data, file)
    with in_file(file):
        return read_script_file(name or safe_name(file.stem), file.suffix.lower(), text)


def _from_recipe(data: bytes, file: Path) -> RecipeFlow:
    from uncaged_bundles.builders.recipes.recipe import read_recipe

    return read_recipe(data, str(file))


def _built(read: Callable[[], RecipeFlow], name: str | None) -> FlowSource:
    from uncaged_bundles.builders.recipes.recipe_flow import build_flow
    from uncaged_bundles.names import parse_flow_name
    from uncaged_engine.effect_kinds import KNOWN

    chosen = None if name is None else parse_flow_name(name)
    flow = read()
    built = build_flow(flow if chosen is None else replace(flow, name=chosen), KNOWN)
    return FlowSource(source=built.source, built=True, active=built.active, notes=built.notes)


def _imports_ours(node: ast.stmt) -> bool:
    match node:
        case ast.Import(names=names):
            return any(name.name.split(".")[0] in AUTHORING for name in names)
        case ast.ImportFrom(module=str(module), level=0):
            return module.split(".")[0] in AUTHORING
        case _:
            return False


def _is_bundle_statement(node: ast.stmt) -> bool:
    """Check for the descriptor or ``run(input, options)``, which only a bundle has."""
    match node:
        case (
            ast.Assign(targets=[ast.Name(id="descriptor")])
            | ast.AnnAssign(target=ast.Name(id="descriptor"))
        ):
            return True
        case (
            ast.FunctionDef(name="run", args=arguments)
            | ast.AsyncFunctionDef(name="run", args=arguments)
        ):
            return [argument.arg for argument in arguments.args] == ["input", "options"]
        case _:
            return False


def _has_statements(tree: ast.Module) -> bool:
    """Check for more than a literal value, such as a recipe with the suffix .py."""
    return any(
        not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant | ast.Dict)
        for node in tree.body
    )
