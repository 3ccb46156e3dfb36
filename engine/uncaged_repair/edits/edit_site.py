"""Edit site: one statement with all that its edits may draw on, such as names in scope with their
types, constants, and functions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .edit import Nature, SourceEdit
from .facts import UNKNOWN, Types, ValueFacts, types_of
from .spans import SourceFile, own_nodes

Function = ast.FunctionDef | ast.AsyncFunctionDef
ATOM = (
    ast.Name
    | ast.Constant
    | ast.Call
    | ast.Attribute
    | ast.Subscript
    | ast.List
    | ast.Dict
    | ast.Set
    | ast.ListComp
    | ast.JoinedStr
)
SYMBOLS: Mapping[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.And: "and", ast.Or: "or",
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.LShift: "<<", ast.RShift: ">>", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.MatMult: "@",
}  # fmt: skip
BINDING: Mapping[str, int] = {
    **{"|": 1, "^": 2, "&": 3, "<<": 4, ">>": 4, "+": 5, "-": 5},
    **{"*": 6, "/": 6, "//": 6, "%": 6, "@": 6, "sign": 7, "**": 8},
}
"""Precedence of arithmetic operators; any other operator has a lower one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditSite:
    """Statement to be edited.

    names: variables in scope, nearest first, with their observed types (empty: not known). words:
    the short strings of the file. functions: the names of the module's functions and classes.
    """

    source: SourceFile
    statement: ast.stmt
    function: Function | None
    holder: ast.ClassDef | None
    names: Mapping[str, Types]
    words: tuple[str, ...]
    functions: tuple[str, ...]
    facts: ValueFacts

    @property
    def nodes(self) -> Iterator[ast.AST]:
        """Yield the parts of the statement that may be edited: no annotations, and no text inside
        f-strings.
        """
        banned = {
            inner for annotation in _annotations(self.statement) for inner in ast.walk(annotation)
        }
        return (
            node
            for node in own_nodes(self.statement)
            if node not in banned and self.has_own_place(node)
        )

    def edit(
        self, node: ast.AST, after: str, kind: str, weight: float, nature: Nature = "change"
    ) -> SourceEdit:
        """Return the replacement of the whole of *node*."""
        start, end = self.source.span(node)
        return self.edit_span(
            start, end, after, kind, weight, nature=nature, line=getattr(node, "lineno", 0)
        )

    def edit_span(
        self,
        start: int,
        end: int,
        after: str,
        kind: str,
        weight: float,
        *,
        nature: Nature = "change",
        line: int = 0,
    ) -> SourceEdit:
        """Return the replacement of the bytes from *start* to *end*. line: the line whose
        suspiciousness counts, by default the statement's.
        """
        return SourceEdit(
            path=self.source.path,
            start=start,
            end=end,
            before=self.source.text(start, end),
            after=after,
            kind=kind,
            line=line or self.statement.lineno,
            weight=weight,
            nature=nature,
        )

    def segment(self, node: ast.AST) -> str:
        return self.source.segment(node)

    def operand(self, node: ast.expr) -> str:
        """Return *node*'s text, usable as operand of any operator."""
        text = self.segment(node)
        return text if isinstance(node, ATOM) else f"({text})"

    def instead(self, node: ast.AST, part: ast.expr) -> str:
        """Return the text of *part*, usable in place of *node*."""
        text = self.segment(part)
        return text if isinstance(part, ATOM) else self.composite(node, text)

    def wrapped_span(self, node: ast.AST) -> tuple[int, int]:
        """Return the span of *node* with the parentheses around it, if an operation has them for it
        alone.
        """
        start, end = self.source.span(node)
        before, after = self.source.data[:start].rstrip(b" "), self.source.data[end:].lstrip(b" ")
        own = isinstance(
            self.source.parents.get(node), ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp
        )
        if (
            own
            and before.endswith(b"(")
            and after.startswith(b")")
            and not re.search(rb"[\w\])]\s*$", before[:-1])
        ):
            return len(before) - 1, len(self.source.data) - len(after) + 1
        return start, end

    def composite(self, node: ast.AST, text: str, symbol: str = "") -> str:
        """Return the operation *text*, in parentheses if the place of *node* needs them for an
        operation with *symbol*.
        """
        if self.wrapped_span(node) != self.source.span(node):
            return text
        above = self.source.parents.get(node)
        own = BINDING.get(symbol, 0)
        match above:
            case ast.BinOp(op=operator, left=left):
                around = BINDING[SYMBOLS[type(operator)]]
                loose = own < around or (own == around and (left is not node or symbol == "**"))
            case ast.Compare() | ast.BoolOp():
                loose = not own
            case ast.UnaryOp() | ast.Await() | ast.Starred():
                loose = True
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Call(func=inner):
                loose = inner is node
            case _:
                loose = False
        return f"({text})" if loose else text

    def types(self, node: ast.AST | None) -> Types:
        return types_of(node, self.names, self.facts)

    def has_own_place(self, node: ast.AST) -> bool:
        """Return whether *node* can be replaced by itself: parts of an f-string and its format have
        the span of the whole string.
        """
        above = self.source.parents.get(node)
        return not isinstance(above, ast.JoinedStr) and not (
            isinstance(node, ast.JoinedStr) and isinstance(above, ast.FormattedValue)
        )


def edit_sites(source: SourceFile, facts: ValueFacts) -> Iterator[EditSite]:
    """Yield one site for each statement of *source*, in the order of the text."""
    functions = [node for node in source.tree.body if isinstance(node, Function | ast.ClassDef)]
    words = [
        node.value
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= 40
    ]
    names: dict[ast.AST, Mapping[str, Types]] = {}
    for statement in ast.walk(source.tree):
        if not isinstance(statement, ast.stmt):
            continue
        around = [
            above
            for above in source.ancestors(statement)
            if isinstance(above, Function | ast.ClassDef)
        ]
        function = next((above for above in around if isinstance(above, Function)), None)
        holder = next((above for above in around if isinstance(above, ast.ClassDef)), None)
        if (scope := function or source.tree) not in names:
            names[scope] = _typed_names(
                source, [above for above in around if isinstance(above, Function)], holder, facts
            )
        yield EditSite(
            source=source,
            statement=statement,
            function=function,
            holder=holder,
            names=names[scope],
            words=tuple(dict.fromkeys(words)),
            functions=tuple(node.name for node in functions),
            facts=facts,
        )


def _typed_names(
    source: SourceFile, functions: list[Function], holder: ast.ClassDef | None, facts: ValueFacts
) -> dict[str, Types]:
    names: dict[str, Types] = {}
    for function in functions:
        for name in _bound_names(function):
            names.setdefault(
                name,
                _observed_types(source.path, function, name, facts)
                or _assigned_types(function, name),
            )
    for name in _module_names(source.tree):
        names.setdefault(name, _assigned_types(source.tree, name))
    if holder is not None and "self" in names:
        names["self"] = names["self"] or frozenset({holder.name})
    return names


def _annotations(statement: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(statement, ast.AnnAssign):
        yield statement.annotation
    if isinstance(statement, Function):
        if statement.returns is not None:
            yield statement.returns
        for argument in ast.walk(statement.args):
            if isinstance(argument, ast.arg) and argument.annotation is not None:
                yield argument.annotation


def _bound_names(function: Function) -> list[str]:
    """Return the names that *function* binds: parameters first, then in the order of the text."""
    parameters = function.args
    every = [*parameters.posonlyargs, *parameters.args, *parameters.kwonlyargs]
    found = [
        argument.arg
        for argument in (
            *every,
            *(extra for extra in (parameters.vararg, parameters.kwarg) if extra),
        )
    ]
    stored = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    found += [node.id for node in sorted(stored, key=lambda node: (node.lineno, node.col_offset))]
    return list(dict.fromkeys(found))


def _module_names(tree: ast.Module) -> list[str]:
    """Return the variables that the module itself binds, without its functions, classes and
    imports.
    """
    assigned = [
        node
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for node in ast.walk(statement)
    ]
    return list(
        dict.fromkeys(
            node.id
            for node in assigned
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        )
    )


def _observed_types(path: str, function: Function, name: str, facts: ValueFacts) -> Types:
    first, last = function.lineno, function.end_lineno or function.lineno
    first = min([first, *(node.lineno for node in function.decorator_list)])
    return UNKNOWN.union(
        *(types for line, types in facts.locals.get((path, name), ()) if first <= line <= last)
    )


def _assigned_types(within: ast.AST, name: str) -> Types:
    """Return the types of the literals and plain calls that are assigned to *name*; empty if
    anything else is assigned, too.
    """
    found: set[str] = set()
    for node in ast.walk(within):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        ):
            types = types_of(node.value, {}, ValueFacts())
            if not types:
                return UNKNOWN
            found |= types
    return frozenset(found)
