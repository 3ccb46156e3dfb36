"""A file given to `add`, `build` or `edit` is a bundle, taken to the byte, or a definition, a
recipe or a script, which is built.
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

from .files import decoded, read_bytes

if TYPE_CHECKING:
    from uncaged_bundles.builders.recipes.flows import RecipeFlow

AUTHORING = ("uncaged_bundles", "uncaged_roles")
"""A definition imports from these; a bundle imports nothing of this project."""
MAX_FILE_BYTES = 8 << 20
SCRIPT_SUFFIXES = (".sh", ".bash", ".ps1")
MAX_SCRIPT_BYTES = 100 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowSource:
    """A bundle's bytes, and where they come from.

    built: they were made here. active: False for a block flow that says of itself that it is
    disabled. notes: what the person should know.
    """

    source: bytes
    built: bool = False
    active: bool = True
    notes: tuple[str, ...] = ()


def bundle_source(file: Path, name: str | None = None) -> FlowSource:
    """Return the bundle that *file* is or gives.

    Args:
        name: what a flow from a recipe or a script will be called; by default what the recipe or
            the file is called.
    Raises:
        NotFoundError, UsageError, BundleError: it is missing, empty, too large, of a kind that is
            no flow, or wrong inside.
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
                f"{str(file)!r} is a JavaScript bundle, which is not run here. Write its roles and its moderator as a Python definition "
                f"('uncaged-workflow init DIRECTORY' writes one to begin with), or its steps as a bundle (docs/bundles.md), "
                f"then: uncaged-workflow add NAME FILE.py"
            )
        case suffix:
            if b"descriptor" in data and kind_of(data) == "bundle":
                return FlowSource(source=data)
            raise UsageError(
                f"{str(file)!r} is no flow: {suffix} is none of .py, .json, .sh, .bash and .ps1"
            )


def read_flow(file: Path) -> bytes:
    """Return the bytes of a flow's file, if there are some and not too many, without a byte order
    mark: the rest is hashed and stored.
    """
    data = read_bytes(file, max_bytes=MAX_FILE_BYTES).removeprefix(BOM_UTF8)
    if not data.strip():
        raise UsageError(f"{str(file)!r} is empty")
    return data


@contextmanager
def in_file(file: Path) -> Iterator[None]:
    """What is wrong inside a bundle is told with the file that it stands in."""
    try:
        yield
    except BundleError as problem:
        raise BundleError(f"{file}: {problem}") from problem


def kind_of(source: bytes) -> str:
    """Return whether a Python file is a ``definition``, a ``bundle`` (or wrong as one), or a
    ``script``.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "bundle"
    if any(_imports_ours(node) for node in tree.body):
        return "definition"
    if any(_is_a_bundles(node) for node in tree.body) or not _does_something(tree):
        return "bundle"
    return "script"


def read_script(data: bytes, file: Path, name: str | None) -> RecipeFlow:
    """Return the flow that a script file is."""
    from uncaged_bundles.builders.recipes.recipe import safe_name
    from uncaged_bundles.builders.recipes.recipe_flow import read_script_file

    if len(data) > MAX_SCRIPT_BYTES:
        raise UsageError(
            f"{str(file)!r} has {len(data):,} bytes; a script has at most {MAX_SCRIPT_BYTES:,}"
        )
    text = decoded(data, file)
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


def _is_a_bundles(node: ast.stmt) -> bool:
    """Whether a statement is one that only a bundle has: its descriptor, or
    ``run(input, options)``.
    """
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


def _does_something(tree: ast.Module) -> bool:
    """Whether a file is more than one value, such as a recipe under the wrong name."""
    return any(
        not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant | ast.Dict)
        for node in tree.body
    )
