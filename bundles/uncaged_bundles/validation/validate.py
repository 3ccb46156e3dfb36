"""Validation of a bundle's bytes, without executing any of them.

The rules have a fixed order, and the first violation is reported with line and column: UTF-8
Python, a literal descriptor, its shape, a generator function ``run``, allowed imports, no dynamic
access. A trusted bundle skips the last two.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NoReturn

from .. import shapes
from ..contract import CLAIMS, Descriptor, parse_descriptor
from ..errors import BundleError
from ..ids import BundleHash, bundle_hash
from ..limits import KNOWN_EFFECTS, EffectKinds
from ..records import dataclass
from ..syntax import parse_module
from .access import forbidden_access
from .findings import Finding
from .literal import find_descriptor, flaw_in_literal, node_at, repeated_key
from .modules import BUILD_FIRST
from .purity import forbidden_import

MAX_SOURCE_BYTES = 1 << 20
_CODING_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)
_JAVASCRIPT = re.compile(r"^\s*(export |import .* from ['\"]|const |// )", re.MULTILINE)
_NESTED = "is nested too deeply to be read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle that passed validation: its bytes, their hash, and the descriptor in them."""

    hash: BundleHash
    source: bytes
    descriptor: Descriptor

    @property
    def trusted(self) -> bool:
        return self.descriptor.policy.trusted

    @property
    def drives_roles(self) -> bool:
        """Whether it was built from the definition of a role workflow."""
        return b"yield from drive_roles(" in self.source

    def _repr_html_(self) -> str:
        """Return the bundle as a notebook shows it."""
        from ..notebook import pairs_html  # for notebooks alone

        found = self.descriptor
        return pairs_html(
            f"{found.name}@{self.hash}",
            (
                ("description", found.description),
                ("kind", found.kind),
                ("roles", ", ".join(found.roles)),
                ("may", ", ".join(found.policy.limits)),
            ),
        )


def read_bundle(
    source: bytes,
    known_effects: EffectKinds = KNOWN_EFFECTS,
    *,
    check_schemas: bool = False,
    check_code: bool = True,
) -> Bundle:
    """Validate a bundle's bytes without executing them.

    Args:
        source: the file, at most 1 MiB.
        known_effects: effect kinds that a policy may name.
        check_schemas: check role schemas and parameters as JSON Schema too, and the policy's hosts
            (slow; done once, when a bundle is added).
        check_code: check imports and dynamic access.
    Raises:
        BundleError: the first rule that is broken, with line and column.
    """
    text = _decode(source)
    try:
        tree = _parse(text)
        descriptor = _read_descriptor(tree, text, known_effects, check_schemas=check_schemas)
        _refuse(_flaw_in_run(tree), text)
        if check_code and not descriptor.policy.trusted:
            _refuse(forbidden_import(tree) or forbidden_access(tree), text)
    except RecursionError as exc:
        raise BundleError(f"line 1, column 1: the file {_NESTED}") from exc
    return Bundle(hash=bundle_hash(source), source=source, descriptor=descriptor)


def read_descriptor(source: bytes, known_effects: EffectKinds = KNOWN_EFFECTS) -> Descriptor:
    """Return the descriptor of a bundle's bytes; the rules about its code are not checked.

    Raises:
        BundleError: the file or its descriptor breaks a rule, with line and column.
    """
    text = _decode(source)
    try:
        return _read_descriptor(_parse(text), text, known_effects, check_schemas=False)
    except RecursionError as exc:
        raise BundleError(f"line 1, column 1: the file {_NESTED}") from exc


def _decode(source: bytes) -> str:
    if len(source) > MAX_SOURCE_BYTES:
        raise BundleError(
            f"line 1, column 1: the file has {len(source):,} bytes; a bundle has at most {MAX_SOURCE_BYTES:,}"
        )
    try:
        text = source.decode()
    except UnicodeDecodeError as exc:
        before = source[: exc.start].decode()
        _refuse_at(before, f"byte 0x{source[exc.start]:02x} is not UTF-8; save the file as UTF-8")
    if "\0" in text:
        _refuse_at(text[: text.index("\0")], "a NUL character is not Python")
    for number, line in enumerate(text.splitlines()[:2], 1):
        cookie = _CODING_COOKIE.match(line)
        if cookie and cookie[1].lower().replace("_", "-") not in ("utf-8", "utf8"):
            raise BundleError(
                f"line {number}, column {cookie.start(1) + 1}: a bundle is UTF-8, but this line says {cookie[1]!r}"
            )
    return text


def _parse(text: str) -> ast.Module:
    try:
        return parse_module(text)
    except SyntaxError as exc:
        hint = f"; {BUILD_FIRST}" if _JAVASCRIPT.search(text) else ""
        raise BundleError(
            f"line {exc.lineno or 1}, column {max(exc.offset or 1, 1)}: not Python: {exc.msg}{hint}"
        ) from exc
    except (MemoryError, ValueError) as exc:
        raise BundleError(
            f"line 1, column 1: not Python that can be read: {exc or 'it ' + _NESTED}"
        ) from exc


def _read_descriptor(
    tree: ast.Module, text: str, known_effects: EffectKinds, *, check_schemas: bool
) -> Descriptor:
    literal = find_descriptor(tree)
    if isinstance(literal, Finding):
        hint = f"; {BUILD_FIRST}" if _must_be_built(tree) else ""
        raise BundleError(literal.located(text) + hint)
    _refuse(flaw_in_literal(literal) or repeated_key(literal), text)
    try:
        descriptor = parse_descriptor(ast.literal_eval(literal), known_effects)
        if check_schemas:
            _check_schemas(descriptor)
            _check_hosts(descriptor)
    except shapes.ShapeError as exc:
        raise BundleError(
            Finding.at(node_at(literal, exc.path[1:]), str(exc)).located(text)
        ) from exc
    except (ValueError, TypeError) as exc:  # such as a list as a mapping's key
        raise BundleError(
            Finding.at(literal, f"'descriptor' is not a literal: {exc}").located(text)
        ) from exc
    return descriptor


def _must_be_built(tree: ast.Module) -> bool:
    is_recipe = (
        len(tree.body) == 1
        and isinstance(tree.body[0], ast.Expr)
        and isinstance(tree.body[0].value, ast.Dict)
    )
    return is_recipe or _imports_ours(tree)


def _imports_ours(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        if any(module.startswith("uncaged_") for module in modules):
            return True
    return False


def _check_schemas(descriptor: Descriptor) -> None:
    from .schemas import check_schema, claims_in

    check_schema(descriptor.parameters, ("descriptor", "parameters"))
    for name, role in descriptor.roles.items():
        path = ("descriptor", "roles", name, "schema")
        check_schema(role.schema, path)
        for where, claim in claims_in(role.schema, path):
            if claim not in CLAIMS:
                raise shapes.ShapeError(
                    where,
                    f"{shapes.shown(claim)} is not a claim that can be checked (known: {', '.join(CLAIMS)})",
                )
            if (
                descriptor.asked_roles
                and descriptor.policy.limits["role"].get("workspace", "none") == "none"
            ):
                raise shapes.ShapeError(
                    where, "is compared with the workspace, but the policy's role has none"
                )


def _check_hosts(descriptor: Descriptor) -> None:
    from ..hosts import check_policy

    check_policy(descriptor.policy.limits, ("descriptor", "policy"))


def _flaw_in_run(tree: ast.Module) -> Finding | None:
    found = [
        node
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == "run"
    ]
    if not found:
        return Finding(
            line=1,
            column=0,
            message="no function 'run' in the file; a bundle has def run(input, options) with a yield in it",
        )
    if len(found) > 1:
        return Finding.at(found[1], "'run' is defined a second time; there is one")
    run = found[0]
    if isinstance(run, ast.AsyncFunctionDef):
        return Finding.at(run, "'run' is async; a bundle's run is a plain generator function")
    if not any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in _own_parts(run)):
        return Finding.at(run, "'run' is no generator function: it has no yield of its own")
    if not _takes_two(run.args):
        return Finding.at(run, "'run' must take two arguments: (input, options)")
    return None


def _takes_two(parameters: ast.arguments) -> bool:
    positional = len(parameters.posonlyargs) + len(parameters.args)
    needs_more = positional - len(parameters.defaults) > 2 or None in parameters.kw_defaults
    return not needs_more and (positional >= 2 or parameters.vararg is not None)


def _own_parts(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield every node of the function's body that is not inside another function or class."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))


def _refuse(finding: Finding | None, text: str) -> None:
    if finding is not None:
        raise BundleError(finding.located(text))


def _refuse_at(before: str, message: str) -> NoReturn:
    lines = before.split("\n")
    raise BundleError(f"line {len(lines)}, column {len(lines[-1]) + 1}: {message}")
