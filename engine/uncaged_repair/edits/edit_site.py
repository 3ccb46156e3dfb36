"""Edit site: one statement with all that its edits may draw on, such as names in scope with their
types, constants, and functions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .edit import Nature, SourceEdit
from .facts import UNKNOWN, Types, ValueFacts, types_of
from .module_index import IndexedStatement, ModuleIndex
from .scopes import Function, NameScope, conditions_of
from .spans import SourceFile

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
LOGGING = frozenset({"debug", "info", "warning", "error", "exception", "critical", "warn"})
NO_DATA = frozenset(
    [
        "module",
        "type",
        "function",
        "builtin_function_or_method",
        "method",
        "Logger",
        "TypeVar",
        "ABCMeta",
        "EnumMeta",
        "EnumType",
    ]
)
"""Observed types of names that stand for no data."""
CALLED = re.compile(rb"[\w\])]\s*$")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EditSite:
    """Statement to be edited.

    nodes: its parts that may be edited, without annotations and the text of f-strings. scope: the
    function around it, else the module. names: variables in scope, nearest first, with their
    observed types (empty: not known). words: the short strings of the file. functions: the names of
    the module's functions and classes. conditions: their spans and names.
    messages: spans of values that are put into messages.
    """

    source: SourceFile
    statement: ast.stmt
    nodes: Sequence[ast.AST]
    scope: NameScope
    index: ModuleIndex
    names: Mapping[str, Types]
    words: tuple[str | bytes, ...]
    functions: tuple[str, ...]
    facts: ValueFacts
    conditions: Sequence[tuple[int, int, frozenset[str]]]
    messages: Sequence[tuple[int, int]]

    @property
    def function(self) -> Function | None:
        """Return the innermost function around the statement."""
        return None if isinstance(self.scope.node, ast.Module) else self.scope.node

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
        data = self.source.data
        low, high = start, end
        while data[low - 1 : low] == b" ":
            low -= 1
        while data[high : high + 1] == b" ":
            high += 1
        own = isinstance(
            self.source.parents.get(node), ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp
        )
        if (
            own
            and data.endswith(b"(", 0, low)
            and data.startswith(b")", high)
            and not CALLED.search(data[max(0, low - 41) : low - 1])
        ):
            return low - 1, high + 1
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


def edit_sites(
    source: SourceFile,
    index: ModuleIndex,
    facts: ValueFacts,
    statements: Iterable[IndexedStatement],
) -> Iterator[EditSite]:
    """Yield one site for each of the *statements* of *source*."""
    names: dict[NameScope, Mapping[str, Types]] = {}
    words, functions = tuple(index.words), tuple(index.functions)
    for statement in statements:
        scope = statement.scopes[0]
        if scope not in names:
            names[scope] = _typed_names(source, statement, index, facts)
        yield EditSite(
            source=source,
            statement=statement.node,
            nodes=statement.nodes,
            scope=scope,
            index=index,
            names=names[scope],
            words=words,
            functions=functions,
            facts=facts,
            conditions=[
                (*source.span(condition), _names_in(condition))
                for node in statement.nodes
                for condition in conditions_of(node)
            ],
            messages=[source.span(value) for node in statement.nodes for value in _shown(node)],
        )


def _names_in(node: ast.expr) -> frozenset[str]:
    return frozenset(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))


def _shown(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the values that *node* puts into a message."""
    match node:
        case ast.FormattedValue(value=value):
            yield value
        case (
            ast.Raise(exc=ast.Call(args=arguments))
            | ast.Call(func=ast.Attribute(attr="format"), args=arguments)
        ):
            yield from arguments
        case ast.Call(func=ast.Attribute(attr=name), args=arguments) if name in LOGGING:
            yield from arguments
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=value):
            yield value
        case ast.Assert(msg=ast.expr() as value):
            yield value
        case _:
            pass


def _typed_names(
    source: SourceFile, statement: IndexedStatement, index: ModuleIndex, facts: ValueFacts
) -> dict[str, Types]:
    """Return the variables in scope with their types: observed ones, else those of the text."""
    names: dict[str, Types] = {}
    for scope in statement.scopes[:-1]:
        for name in scope.bound:
            if name not in names:
                names[name] = _observed_types(
                    source.path, scope.node, name, facts
                ) or _assigned_types(scope, name)
    for name in index.variables:
        if name not in names:
            names[name] = _assigned_types(index.module, name)
    if statement.holder is not None and "self" in names:
        names["self"] = names["self"] or frozenset({statement.holder.name})
    inner = {name for scope in statement.scopes[:-1] for name in scope.bound}
    return {
        name: types
        for name, types in names.items()
        if not _is_no_data(types) and (name in inner or name not in index.objects)
    }


def _is_no_data(types: Types) -> bool:
    """Return whether only modules, classes, functions and the like were observed, and perhaps
    None.
    """
    return bool(types) and types <= NO_DATA | {"NoneType"} and types != {"NoneType"}


def _observed_types(
    path: str, function: Function | ast.Module, name: str, facts: ValueFacts
) -> Types:
    if isinstance(function, ast.Module) or (path, name) not in facts.locals:
        return UNKNOWN
    first, last = function.lineno, function.end_lineno or function.lineno
    first = min([first, *(node.lineno for node in function.decorator_list)])
    return UNKNOWN.union(
        *(types for line, types in facts.locals[path, name] if first <= line <= last)
    )


def _assigned_types(scope: NameScope, name: str) -> Types:
    """Return the types of the literals and plain calls that are assigned to *name*; empty if
    anything else is assigned, too.
    """
    found: set[str] = set()
    for value in scope.assigned.get(name, ()):
        types = types_of(value, {}, ValueFacts())
        if not types:
            return UNKNOWN
        found |= types
    return frozenset(found)
