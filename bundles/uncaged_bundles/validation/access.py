"""Rules against evaluated text, dunder attributes and random numbers without a seed in a bundle.

They serve determinism, review and early, clear errors. They are no security boundary: the kernel's
sandbox is.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping

from .findings import Finding, first
from .modules import advice
from .purity import imported_names, member_refusal

_NEVER_RUN = "text is never run as code in a bundle"
_STATIC_NAME = "an attribute is written out in a bundle; for computed names use a dict"
_OWN_DICT = "use a dict of your own"
_SHARED = "all threads of a bundle share the standard library, and a replay alone would differ; keep it in a variable of your own"
REFUSED_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("eval", "exec", "compile"), _NEVER_RUN),
    **dict.fromkeys(("getattr", "setattr", "delattr"), _STATIC_NAME),
    **dict.fromkeys(("vars", "globals", "locals"), _OWN_DICT),
    "__import__": "a dynamic import hides what a bundle needs; write an import statement",
    "open": advice("io"),
    "input": advice("getpass"),
    "breakpoint": "there is no debugger in the sandbox",
}
READABLE_DUNDERS = frozenset({"__name__", "__doc__"})
INTERPRETER_ATTRIBUTES = frozenset(
    {
        "gi_frame",
        "gi_code",
        "gi_yieldfrom",
        "cr_frame",
        "cr_code",
        "cr_await",
        "ag_frame",
        "ag_code",
        "ag_await",
    }
    | {
        "tb_frame",
        "tb_next",
        "f_back",
        "f_builtins",
        "f_code",
        "f_globals",
        "f_locals",
        "co_code",
        "co_consts",
        "co_names",
    }
)
_DUNDER = re.compile(r"__\w+__")
_DUNDER_FIELD = re.compile(r"\{[^{}]*__\w+__")
_NAMED_ACCESS = frozenset({"operator.attrgetter", "operator.methodcaller"})
_FORMATTERS = frozenset({"format", "format_map", "vformat"})
_INTROSPECTION = "a bundle does not inspect the interpreter"

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def forbidden_access(tree: ast.Module) -> Finding | None:
    """Return a finding at the first dynamic import, evaluation of text, dunder access or random
    number without a seed, by position.
    """
    visitor = _AccessVisitor(imported_names(tree))
    visitor.visit(tree)
    return first(visitor.findings)


class _AccessVisitor(ast.NodeVisitor):
    """Visits a tree and tracks which names the functions around a node bind themselves:
    ``run(input, options)`` may read *input*.
    """

    def __init__(self, imported: Mapping[str, str]) -> None:
        self.findings: list[Finding] = []
        self._imported = imported
        self._scopes: list[Function | Comprehension] = []
        self._bound: dict[ast.AST, frozenset[str]] = {}

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            return
        if node.id in REFUSED_NAMES:
            if not self._is_shadowed(node.id):
                self._refuse(node, f"{node.id!r} is refused: {REFUSED_NAMES[node.id]}")
        elif _DUNDER.fullmatch(node.id) and node.id not in READABLE_DUNDERS:
            self._refuse(node, f"access to {node.id!r} is refused: {_INTROSPECTION}")
        elif self._qualified_name(node) == "random":
            self._refuse(
                node,
                'the module random may not be used as a value; use random.Random(options["seed"])',
            )

    def visit_Attribute(self, node: ast.Attribute) -> None:
        called = node.value.func if isinstance(node.value, ast.Call) else None
        if not (node.attr == "__init__" and isinstance(called, ast.Name) and called.id == "super"):
            self._check_attribute(node, node.attr)
        base = self._qualified_name(node.value)
        if base is not None and not isinstance(node.ctx, ast.Load):
            self._refuse(node, f"{base}.{node.attr} is not the bundle's to change: {_SHARED}")
        elif base is not None and (message := member_refusal(f"{base}.{node.attr}")):
            self._refuse(node, message)
        elif base != "random":
            # ``random.Random`` is the only attribute that may be read of the module
            self.visit(node.value)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        base = self._qualified_name(node.value)
        if base is not None and not isinstance(node.ctx, ast.Load):
            self._refuse(node, f"{base} is not the bundle's to change: {_SHARED}")
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        called = self._qualified_name(node.func)
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        texts = [
            value
            for value in arguments
            if isinstance(value, ast.Constant) and isinstance(value.value, str)
        ]
        if called == "random.Random":
            if all(isinstance(value, ast.Constant) and value.value is None for value in arguments):
                self._refuse(
                    node,
                    'random.Random without a seed differs from run to run; use random.Random(options["seed"])',
                )
        elif called in _NAMED_ACCESS:
            for value in texts:
                for name in str(value.value).split("."):
                    self._check_attribute(value, name)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in _FORMATTERS:
            for template in (node.func.value, *texts):
                if isinstance(template, ast.Constant) and _DUNDER_FIELD.search(str(template.value)):
                    self._refuse(
                        template, f"a format field with a dunder name is refused: {_INTROSPECTION}"
                    )
        self.generic_visit(node)

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        for name in node.kwd_attrs:
            self._check_attribute(node, name)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        outside: list[ast.AST] = [
            *node.decorator_list,
            node.args,
            *([node.returns] if node.returns else []),
        ]
        self._visit_scope(node, outside, node.body)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_scope(node, [node.args], [node.body])

    def visit_ListComp(self, node: Comprehension) -> None:
        head, *others = node.generators
        results = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._visit_scope(node, [head.iter], [head.target, *head.ifs, *others, *results])

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_ListComp

    def _visit_scope(
        self, node: Function | Comprehension, outside: Iterable[ast.AST], inside: Iterable[ast.AST]
    ) -> None:
        """Visit *outside* before the scope: decorators, defaults, annotations and a comprehension's
        first iterable are evaluated outside it.
        """
        for part in outside:
            self.visit(part)
        self._scopes.append(node)
        for child in inside:
            self.visit(child)
        self._scopes.pop()

    def _check_attribute(self, node: ast.expr | ast.pattern, name: str) -> None:
        if _DUNDER.fullmatch(name) and name not in READABLE_DUNDERS:
            self._refuse(node, f"access to {name!r} is refused: {_INTROSPECTION}")
        elif name in INTERPRETER_ATTRIBUTES:
            self._refuse(
                node,
                f"access to {name!r} is refused: frames, tracebacks and code objects are the interpreter's own",
            )

    def _qualified_name(self, node: ast.expr) -> str | None:
        """Return the dotted name of an imported name or of an attribute of one; None for others."""
        if isinstance(node, ast.Attribute):
            base = self._qualified_name(node.value)
            return None if base is None else f"{base}.{node.attr}"
        if (
            not isinstance(node, ast.Name)
            or node.id not in self._imported
            or self._is_shadowed(node.id)
        ):
            return None
        return self._imported[node.id]

    def _is_shadowed(self, name: str) -> bool:
        """Tell whether a function around the node binds *name* itself. A binding of a module or
        class does not count: it may come too late.
        """
        for scope in self._scopes:
            if scope not in self._bound:
                self._bound[scope] = frozenset(_names_bound_in(scope))
            if name in self._bound[scope]:
                return True
        return False

    def _refuse(self, node: ast.expr | ast.pattern, message: str) -> None:
        self.findings.append(Finding.at(node, message))


def _names_bound_in(scope: Function | Comprehension) -> set[str]:
    """Return the names that are certainly the scope's own: parameters, and targets of assignments
    that are not declared global or deleted.
    """
    bound: set[str] = set()
    released: set[str] = set()
    if isinstance(scope, Function):
        parameters = scope.args
        named = [
            *parameters.posonlyargs,
            *parameters.args,
            *parameters.kwonlyargs,
            parameters.vararg,
            parameters.kwarg,
        ]
        bound.update(parameter.arg for parameter in named if parameter is not None)
    for node in _own_nodes(scope):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                bound.add(name)
            case ast.Name(id=name, ctx=ast.Del()) | ast.ExceptHandler(name=str(name)):
                released.add(name)  # unbound again afterwards
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                released.update(names)
            case _:
                pass
    return bound - released


def _own_nodes(scope: Function | Comprehension) -> Iterator[ast.AST]:
    """Yield every node of *scope* that is not inside another scope; a comprehension owns only its
    targets.
    """
    if isinstance(scope, Function):
        pending: list[ast.AST] = list(scope.body) if isinstance(scope.body, list) else [scope.body]
    else:
        pending = [generator.target for generator in scope.generators]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (Function, Comprehension, ast.ClassDef)):
            pending.extend(ast.iter_child_nodes(node))
