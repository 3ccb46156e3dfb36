"""Index of one module: its scopes, names, conditions and constants, from one walk over the tree.

All edit sites of a file share it, so that no operator walks a function or the file again.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import re
from dataclasses import dataclass, field

from .scopes import Function, NameScope, note_in_scope
from .spans import LINE_END, SourceFile

MAX_WORD = 40
TOKEN = re.compile(r"[^\W\d]\w*|\d[\w.]*|[-+*/%&|^<>=!]=|//|\*\*|->|'[^'\n]*'|\"[^\"\n]*\"|\S")
OF_TYPES = frozenset(
    [
        "TypeVar",
        "ParamSpec",
        "TypeVarTuple",
        "NewType",
        "NamedTuple",
        "namedtuple",
        "Enum",
        "TypedDict",
        "getLogger",
        "Union",
        "Optional",
    ]
)
"""Calls and items of these are types and loggers, not data."""


TYPES = frozenset(name for name, held in vars(builtins).items() if isinstance(held, type))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IndexedStatement:
    """Statement with its place.

    scopes: those of the functions around it, innermost first, then the module's. nodes: it and its
    expressions that may be edited, in the order of the text.
    """

    node: ast.stmt
    scopes: tuple[NameScope, ...]
    holder: ast.ClassDef | None
    nodes: list[ast.AST] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModuleIndex:
    """Statements of a module with their scopes, and what the whole file uses.

    variables: names that the module itself assigns. words: short strings. methods: attributes
    that are called; fields: those that are not. exceptions: names that look like those of
    exceptions. continued: lines that begin inside a string. sequences: each three tokens in a row
    of one line. objects: names of modules, classes, functions, types and loggers: no data.
    definitions: functions by name, the `__init__` of a class by the class's name. alike: names
    already looked up with `similar`.
    """

    module: NameScope
    statements: list[IndexedStatement] = field(default_factory=list)
    variables: dict[str, int] = field(default_factory=dict)
    words: dict[str | bytes, int] = field(default_factory=dict)
    methods: dict[str, int] = field(default_factory=dict)
    fields: dict[str, int] = field(default_factory=dict)
    exceptions: dict[str, int] = field(default_factory=dict)
    continued: set[int] = field(default_factory=set)
    tokens: set[str] = field(default_factory=set)
    sequences: set[tuple[str, ...]] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)

    keywords: set[str] = field(default_factory=set)
    definitions: dict[str, Function] = field(default_factory=dict)
    alike: dict[str, list[str]] = field(default_factory=dict)

    def similar(self, name: str) -> list[str]:
        """Return names of the file that are spelled like *name*, the nearest first."""
        if name not in self.alike:
            known = self.objects | self.module.stored.keys() | self.module.loaded.keys()
            first = {other for other in known if other[:1].lower() == name[:1].lower()}
            near = difflib.get_close_matches(name, sorted(first - {name}), n=4, cutoff=0.6)
            self.alike[name] = near
        return self.alike[name]

    def parameters(self, name: str) -> list[str]:
        """Return the positional parameters of the file's function, method or class *name*, without
        `self` and `cls`; empty if there is none.
        """
        function = self.definitions.get(name)
        if function is None:
            return []
        every = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        return every[1:] if every[:1] in (["self"], ["cls"]) else every

    @property
    def functions(self) -> list[str]:
        """Return the names of the module's functions and classes."""
        body = getattr(self.module.node, "body", [])
        return [node.name for node in body if isinstance(node, Function | ast.ClassDef)]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Place:
    """Position of a node during the walk. editable: it is part of no annotation."""

    statement: IndexedStatement | None
    scopes: tuple[NameScope, ...]
    holder: ast.ClassDef | None
    editable: bool


def index_module(source: SourceFile) -> ModuleIndex:
    """Visit each node of *source* once."""
    module = NameScope(node=source.tree)
    index = ModuleIndex(module=module)
    for line in LINE_END.split(source.data):
        tokens = TOKEN.findall(line.decode())
        index.tokens.update(tokens)
        index.sequences.update(zip(tokens, tokens[1:], tokens[2:], strict=False))
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
            inner = (NameScope(node=node), *here.scopes)
            here = _Place(statement=here.statement, scopes=inner, holder=here.holder, editable=True)
        elif isinstance(node, ast.ClassDef):
            here = _Place(statement=here.statement, scopes=here.scopes, holder=node, editable=True)
        _note_in_file(index, source, node, here)
        for scope in here.scopes:
            note_in_scope(scope, node)
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
        case ast.Constant(value=str() | bytes() as word) if len(word) <= MAX_WORD:
            index.words[word] = index.words.get(word, 0) + 1
        case ast.keyword(arg=str() as name) | ast.arg(arg=name):
            index.keywords.add(name)
        case ast.Attribute(attr=name):
            above = source.parents.get(node)
            called = isinstance(above, ast.Call) and above.func is node
            found = index.methods if called else index.fields
            found[name] = found.get(name, 0) + 1
        case ast.Name(id=name) | ast.ClassDef(name=name) if name.endswith(("Error", "Exception")):
            index.exceptions[name] = index.exceptions.get(name, 0) + 1
        case _:
            pass
    if isinstance(node, Function):
        above = source.parents.get(node)
        own = node.name == "__init__" and isinstance(above, ast.ClassDef)
        name = above.name if own and isinstance(above, ast.ClassDef) else node.name
        index.definitions.setdefault(name, node)
    _note_objects(index, node)
    if isinstance(node, ast.Constant | ast.JoinedStr):
        index.continued.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))


def _note_objects(index: ModuleIndex, node: ast.AST) -> None:
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            index.objects.update(
                (alias.asname or alias.name).partition(".")[0]
                for alias in names
                if not (alias.asname or alias.name).isupper()
            )
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            index.objects.add(name)
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            match value:
                case ast.Call(func=ast.Name(id=made) | ast.Attribute(attr=made)) if (
                    made in OF_TYPES
                ):
                    index.objects.add(name)
                case ast.Subscript(value=ast.Name(id=made) | ast.Attribute(attr=made)) if (
                    made in OF_TYPES
                ):
                    index.objects.add(name)
                case ast.Name(id=made) if made in TYPES:
                    index.objects.add(name)
                case ast.Lambda():
                    index.objects.add(name)
                case _:
                    pass
        case _:
            pass
