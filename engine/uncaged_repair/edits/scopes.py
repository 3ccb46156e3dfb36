"""Scopes of a module: the names, conditions and operands of each function and of the whole file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

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


@dataclass(frozen=True, kw_only=True, eq=False)
class NameScope:
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
    attributes: set[str] = field(default_factory=set)
    calls: dict[str, list[ast.Call]] = field(default_factory=dict)
    conditions: list[ast.expr] = field(default_factory=list)
    operands: list[ast.Subscript | ast.Attribute | ast.Call] = field(default_factory=list)
    results: list[ast.expr] = field(default_factory=list)
    statements: list[ast.stmt] = field(default_factory=list)

    @cached_property
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


def note_in_scope(scope: NameScope, node: ast.AST) -> None:
    """Add what *node* is in *scope*."""
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
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            scope.calls.setdefault(name, []).append(node)
        case _:
            pass
    if isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
        scope.operands.append(node)
    if isinstance(node, ast.Attribute):
        scope.attributes.add(node.attr)
        if isinstance(node.ctx, ast.Store):
            scope.kept.add(node.attr)
    if isinstance(node, SIMPLE):
        scope.statements.append(node)
