"""Index of one module: its scopes, names, conditions and constants, from one walk over the tree.

All edit sites of a file share it, so that no operator walks a function or the file again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from .spans import SourceFile

Function = ast.FunctionDef | ast.AsyncFunctionDef
SIMPLE = (
    ast.Assign
    | ast.AugAssign
    | ast.AnnAssign
    | ast.Expr
    | ast.Return
    | ast.Raise
    | ast.Break
    | ast.Continue
    | ast.Delete
    | ast.Assert
)
MAX_WORD = 40


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scope:
    """Contents of a function, or of the whole module, in the order of the text; those of the
    functions inside it count.

    assigned: variable to the expressions that are assigned to it. kept: attributes that are
    assigned. operands: items, attributes and calls. results: returned expressions.
    """

    node: Function | ast.Module
    stored: dict[str, list[ast.Name]] = field(default_factory=dict)
    loaded: dict[str, list[ast.Name]] = field(default_factory=dict)
    assigned: dict[str, list[ast.expr]] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)
    conditions: list[ast.expr] = field(default_factory=list)
    operands: list[ast.Subscript | ast.Attribute | ast.Call] = field(default_factory=list)
    results: list[ast.expr] = field(default_factory=list)
    statements: list[ast.stmt] = field(default_factory=list)

    @property
    def parameters(self) -> list[str]:
        """Return the names of the parameters, positional ones first."""
        if isinstance(self.node, ast.Module):
            return []
        every = self.node.args
        extra = [argument for argument in (every.vararg, every.kwarg) if argument is not None]
        plain = [*every.posonlyargs, *every.args, *every.kwonlyargs]
        return [argument.arg for argument in (*plain, *extra)]

    @property
    def bound(self) -> list[str]:
        """Return the names that are bound: parameters first, then in the order of the text."""
        first = {
            name: (nodes[0].lineno, nodes[0].col_offset) for name, nodes in self.stored.items()
        }
        return list(dict.fromkeys([*self.parameters, *sorted(first, key=lambda name: first[name])]))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexedStatement:
    """Statement with its place.

    scopes: those of the functions around it, innermost first, then the module's. nodes: it and its
    expressions that may be edited, in the order of the text.
    """

    node: ast.stmt
    scopes: tuple[Scope, ...]
    holder: ast.ClassDef | None
    nodes: list[ast.AST] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModuleIndex:
    """Statements of a module with their scopes, and what the whole file uses.

    variables: names that the module itself assigns. words: short strings. methods: attributes
    that are called; fields: those that are not. exceptions: names that look like those of
    exceptions. continued: lines that begin inside a string.
    """

    module: Scope
    statements: list[IndexedStatement] = field(default_factory=list)
    variables: dict[str, int] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)
    methods: dict[str, int] = field(default_factory=dict)
    fields: dict[str, int] = field(default_factory=dict)
    exceptions: dict[str, int] = field(default_factory=dict)
    continued: set[int] = field(default_factory=set)

    @property
    def functions(self) -> list[str]:
        """Return the names of the module's functions and classes."""
        body = getattr(self.module.node, "body", [])
        return [node.name for node in body if isinstance(node, Function | ast.ClassDef)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Place:
    """Position of a node during the walk. editable: it is part of no annotation."""

    statement: IndexedStatement | None
    scopes: tuple[Scope, ...]
    holder: ast.ClassDef | None
    editable: bool


def index_module(source: SourceFile) -> ModuleIndex:
    """Visit each node of *source* once."""
    module = Scope(node=source.tree)
    index = ModuleIndex(module=module)
    top = _Place(statement=None, scopes=(module,), holder=None, editable=True)
    waiting: list[tuple[ast.AST, _Place]] = [(source.tree, top)]
    while waiting:
        node, place = waiting.pop()
        here = place
        if isinstance(node, ast.stmt):
            statement = IndexedStatement(node=node, scopes=place.scopes, holder=place.holder)
            index.statements.append(statement)
            here = _Place(
                statement=statement, scopes=place.scopes, holder=place.holder, editable=True
            )
        if here.statement is not None and here.editable and has_own_place(source, node):
            here.statement.nodes.append(node)
        if isinstance(node, Function):
            inner = (Scope(node=node), *here.scopes)
            here = _Place(statement=here.statement, scopes=inner, holder=here.holder, editable=True)
        elif isinstance(node, ast.ClassDef):
            here = _Place(statement=here.statement, scopes=here.scopes, holder=node, editable=True)
        _note_in_file(index, source, node, here)
        for scope in here.scopes:
            _note_in_scope(scope, node)
        waiting += [(child, _within(here, child, editable)) for child, editable in _parts(node)]
    return index


def has_own_place(source: SourceFile, node: ast.AST) -> bool:
    """Return whether *node* can be replaced by itself: parts of an f-string and its format have the
    span of the whole string.
    """
    above = source.parents.get(node)
    return not isinstance(above, ast.JoinedStr) and not (
        isinstance(node, ast.JoinedStr) and isinstance(above, ast.FormattedValue)
    )


def conditions_of(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the condition of *node*, if it has one."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test
        case ast.comprehension(ifs=[condition, *_]):
            yield condition
        case ast.Return(value=ast.Compare() | ast.BoolOp() as value):
            yield value
        case _:
            pass


def _parts(node: ast.AST) -> list[tuple[ast.AST, bool]]:
    """Return the children of *node*, last first, each with whether it is no annotation."""
    banned: set[ast.AST | None] = set()
    if isinstance(node, ast.AnnAssign | ast.arg):
        banned = {node.annotation}
    elif isinstance(node, Function):
        banned = {node.returns}
    return [(child, child not in banned) for child in [*ast.iter_child_nodes(node)][::-1]]


def _within(place: _Place, child: ast.AST, editable: bool) -> _Place:
    if editable or isinstance(child, ast.stmt):
        return place
    return _Place(
        statement=place.statement, scopes=place.scopes, holder=place.holder, editable=False
    )


def _note_in_file(index: ModuleIndex, source: SourceFile, node: ast.AST, place: _Place) -> None:
    match node:
        case ast.Name(id=name, ctx=ast.Store()):
            holder = place.statement.node if place.statement is not None else None
            own = len(place.scopes) == 1 and place.holder is None
            if own and isinstance(holder, ast.Assign | ast.AnnAssign):
                index.variables[name] = index.variables.get(name, 0) + 1
        case ast.Constant(value=str() as word) if len(word) <= MAX_WORD:
            index.words[word] = index.words.get(word, 0) + 1
        case ast.Attribute(attr=name):
            above = source.parents.get(node)
            called = isinstance(above, ast.Call) and above.func is node
            found = index.methods if called else index.fields
            found[name] = found.get(name, 0) + 1
        case ast.Name(id=name) | ast.ClassDef(name=name) if name.endswith(("Error", "Exception")):
            index.exceptions[name] = index.exceptions.get(name, 0) + 1
        case _:
            pass
    if isinstance(node, ast.Constant | ast.JoinedStr):
        index.continued.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))


def _note_in_scope(scope: Scope, node: ast.AST) -> None:
    scope.conditions.extend(conditions_of(node))
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            scope.loaded.setdefault(name, []).append(node)
        case ast.Name(id=name, ctx=ast.Store()):
            scope.stored.setdefault(name, []).append(node)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                if isinstance(target, ast.Name):
                    scope.assigned.setdefault(target.id, []).append(value)
        case ast.Return(value=ast.expr() as value):
            scope.results.append(value)
        case _:
            pass
    if isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
        scope.operands.append(node)
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        scope.kept.add(node.attr)
    if isinstance(node, SIMPLE):
        scope.statements.append(node)
