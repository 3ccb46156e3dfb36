"""Definitions of role workflows as JSON data: the inverse of `build_workflow`, and a builder.

A bundle holds all of its definition, so the same bundle is built from what is read back. The
author's functions are text that is carried as it is: the builder executes nothing of it.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from symtable import symtable
from typing import Any

from uncaged_bundles import shapes
from uncaged_bundles.carried import workflow as carried
from uncaged_bundles.errors import BundleError
from uncaged_bundles.limits import KNOWN_EFFECTS, EffectKinds
from uncaged_bundles.syntax import parse_module
from uncaged_bundles.validation.validate import Bundle

from .carrying.carry import Carrier
from .carrying.imports import Import, write_imports
from .text.layout import spaced
from .workflow import (
    AUTHOR_HEAD,
    FUNCTIONS,
    KIND,
    RESERVED,
    check_built,
    write_descriptor,
    write_run,
    write_source,
)

__all__ = ["definition_source", "read_definition"]

OFFERED = ("START", "END", "View")
"""Names of ours that an author's functions may use."""
PROMPTS = ("description", "systemPrompt", "extractPrompt")
REQUIRED = ("kind", "name", "description", "parameters", "roles", "policy", "continues")
KEYS = frozenset({*REQUIRED, *FUNCTIONS, "graph", "onFailure", "code"})
BREAK = "\n\n\n"


def read_definition(bundle: Bundle) -> dict[str, object] | None:
    """Return the definition that a bundle was built from; None if it was not built from one.

    ``moderator`` is a table or, like ``result`` and ``recover``, the name of a function in
    ``code``.
    """
    raw, text = bundle.descriptor.raw, bundle.source.decode()
    tree = parse_module(text)
    named = _functions_of_run(tree)
    if raw.get("kind") != KIND or named is None or not set(REQUIRED) <= raw.keys():
        return None
    authored = text.partition(f"\n{AUTHOR_HEAD}{BREAK}")[2].rpartition(f"{BREAK}def run(")[0]
    imports = "\n".join(write_imports(_imports(tree)))
    document = {key: raw[key] for key in REQUIRED} | named
    if "moderator" not in named:
        document["moderator"] = raw.get("graph")
    elif "graph" in raw:
        document["graph"] = raw["graph"]
    if "onFailure" in raw:
        document["onFailure"] = raw["onFailure"]
    if authored:
        document["code"] = BREAK.join(part for part in (imports, authored) if part) + "\n"
    return document


def definition_source(
    document: object, name: str, known_effects: EffectKinds = KNOWN_EFFECTS
) -> bytes:
    """Return the bundle of a definition.

    Raises:
        BundleError: the definition is not valid, or is that of a flow that is not *name*.
    """
    fields = shapes.mapping(document, ("definition",))
    shapes.known_keys(fields, KEYS, ("definition",))
    own = shapes.text(shapes.required(fields, "name", ()), ("name",))
    if own != name:
        raise BundleError(f"it is the definition of the flow {own!r}, not of {name!r}")
    moderator = shapes.required(fields, "moderator", ())
    is_table = not isinstance(moderator, str)
    functions = {
        part: shapes.text(fields[part], (part,))
        for part in FUNCTIONS
        if part in fields and not (part == "moderator" and is_table)
    }
    table: Any = fields.get("graph")
    if is_table:
        if table is not None:
            raise BundleError("definition: its table is its graph; leave the graph out")
        table = shapes.mapping(moderator, ("moderator",))
    elif table is not None:
        table = shapes.mapping(table, ("graph",))
    code = shapes.text(fields.get("code", ""), ("code",))
    tree = _parsed(code)
    driver = _driver(code, tree, functions)
    source = write_source(
        name=name,
        imports=write_imports(_imports(tree)),
        descriptor=write_descriptor(
            name=name,
            description=shapes.text(fields.get("description"), ("description",)),
            parameters=shapes.mapping(fields.get("parameters"), ("parameters",)),
            roles=dict(_roles(fields.get("roles"))),
            policy=shapes.mapping(fields.get("policy"), ("policy",)),
            continues=shapes.truth(fields.get("continues"), ("continues",)),
            on_failure=shapes.text(fields.get("onFailure", ""), ("onFailure",)),
            table=table,
            is_moderator=is_table,
        ),
        driver=driver,
        authored=_without_imports(code, tree),
        run=write_run(functions),
    )
    return check_built(source, name, known_effects)


def _functions_of_run(tree: ast.Module) -> dict[str, object] | None:
    """Return the functions that the ``run`` of a built workflow passes to its driver, by part; None
    if it is the ``run`` of something else.
    """
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.FunctionDef) or last.name != "run":
        return None
    calls = [
        node
        for node in ast.walk(last)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "drive_roles"
    ]
    if len(calls) != 1:
        return None
    return {
        str(one.arg): one.value.id
        for one in calls[0].keywords
        if one.arg in FUNCTIONS and isinstance(one.value, ast.Name)
    }


def _driver(code: str, authored: ast.Module, functions: Mapping[str, str]) -> str:
    """Return the driver with what the author's code uses of ours.

    Raises:
        BundleError: the code binds a name of the driver, or lacks a function.
    """
    for part, name in functions.items():
        _check_function(authored, part, name)
    carrier = Carrier(reserved=RESERVED)
    used = {node.id for node in ast.walk(authored) if isinstance(node, ast.Name)}
    needed = [name for name in OFFERED if name in used]
    for name in ["drive_roles", *([] if "moderator" in functions else ["follow_table"]), *needed]:
        carrier.carry(carried.__name__, name)
    bound = {*RESERVED, *(one.name for one in carrier.bindings())}
    if clash := sorted(bound.intersection(_bound(code))):
        raise BundleError(f"code: every bundle binds {', '.join(clash)} itself; rename yours")
    return spaced([text for _, text in carrier.code()])


def _check_function(tree: ast.Module, part: str, name: str) -> None:
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    wanted = FUNCTIONS[part]
    if len(found) != 1 or found[0].decorator_list:
        raise BundleError(f"{part}: code has no plain function {name!r}")
    arguments = found[0].args
    other = (arguments.kwonlyargs, arguments.defaults, arguments.vararg, arguments.kwarg)
    if len(arguments.posonlyargs) + len(arguments.args) != len(wanted) or any(other):
        raise BundleError(f"code: the {part} {name!r} must take exactly ({', '.join(wanted)})")
    if any(_yields(statement) for statement in found[0].body):
        raise BundleError(f"code: the {part} {name!r} is a generator; it must simply return")


def _yields(node: ast.AST) -> bool:
    """Tell whether a ``yield`` in a node is one of the function around it."""
    match node:
        case ast.Yield() | ast.YieldFrom():
            return True
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            return False
        case _:
            return any(map(_yields, ast.iter_child_nodes(node)))


def _roles(raw: object) -> Iterator[tuple[str, dict[str, object]]]:
    for name, one in shapes.mapping(raw, ("roles",)).items():
        path = ("roles", name)
        role = shapes.mapping(one, path)
        shapes.known_keys(role, (*PROMPTS, "schema"), path)
        texts = {key: shapes.text(role.get(key), (*path, key)) for key in PROMPTS}
        yield name, {**texts, "schema": shapes.mapping(role.get("schema"), (*path, "schema"))}


def _parsed(code: str) -> ast.Module:
    try:
        tree = parse_module(code)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as while a bundle is read
            compile(tree, "code", "exec", dont_inherit=True)  # finds a return outside of a function
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        raise BundleError(f"code: it is not valid Python: {exc}") from exc
    return tree


def _imports(tree: ast.Module) -> Iterator[Import]:
    """Yield the imports at the top of a file."""
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (Import.of(node, alias) for alias in node.names)


def _without_imports(code: str, tree: ast.Module) -> str:
    """Return the code after its imports, which are lines of their own before all else.

    Raises:
        BundleError: an import follows other code.
    """
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    if tree.body[: len(imports)] != imports:
        raise BundleError("code: its imports must come first")
    last = max((node.end_lineno or 0 for node in imports), default=0)
    return "\n".join(code.split("\n")[last:]).strip("\n")


def _bound(code: str) -> Iterator[str]:
    """Yield the names that a file binds at its top level."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        top = symtable(code, "code", "exec")
    for symbol in top.get_symbols():
        if symbol.is_assigned() or symbol.is_imported():
            yield symbol.get_name()
