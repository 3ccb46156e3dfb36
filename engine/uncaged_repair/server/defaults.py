"""Changed default values of one function's parameters, where nothing else of a module changed."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FunctionType
    from typing import Any

    Function = ast.FunctionDef | ast.AsyncFunctionDef


class ChangedDefaults:
    """New default values by parameter, all of them literals. name, line: of the function's `def`,
    which has no decorators.
    """

    def __init__(self, function: Function, values: dict[str, Any]) -> None:
        self.name, self.line = function.name, function.lineno
        self._values = values

    def apply(self, function: FunctionType) -> None:
        """Change the defaults of the live *function*."""
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        known = function.__defaults__ or ()
        positional: dict[str, Any] = dict(zip(names[len(names) - len(known) :], known))  # noqa: B905 - Python 3.8
        positional.update({name: self._values[name] for name in names if name in self._values})
        function.__defaults__ = tuple(positional[name] for name in names if name in positional)
        keywords = {name: value for name, value in self._values.items() if name not in names}
        if keywords:
            function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), **keywords}


def changed_defaults(old: bytes, new: bytes) -> ChangedDefaults | None:
    """Return the change between two texts of a module; None if more than the defaults of one
    function differs, or if a new one is no literal.
    """
    before, after = ast.parse(old), ast.parse(new)
    pairs = list(zip(_functions(before), _functions(after)))  # noqa: B905 - the dumps tell whether they are as many
    changed = [
        (was, becomes) for was, becomes in pairs if ast.dump(was.args) != ast.dump(becomes.args)
    ]
    if len(changed) != 1 or changed[0][0].decorator_list:
        return None
    was, becomes = changed[0]
    known, wanted = _defaults(was.args), _defaults(becomes.args)
    if not known.keys() <= wanted.keys():
        return None
    try:
        values = {
            name: ast.literal_eval(value)
            for name, value in wanted.items()
            if name not in known or ast.dump(value) != ast.dump(known[name])
        }
    except ValueError:
        return None
    becomes.args.defaults, becomes.args.kw_defaults = was.args.defaults, was.args.kw_defaults
    return ChangedDefaults(was, values) if ast.dump(before) == ast.dump(after) else None


def _functions(tree: ast.Module) -> list[Function]:
    return [
        node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]


def _defaults(arguments: ast.arguments) -> dict[str, ast.expr]:
    positional = [*arguments.posonlyargs, *arguments.args]
    last = positional[len(positional) - len(arguments.defaults) :]
    pairs = [*zip(last, arguments.defaults), *zip(arguments.kwonlyargs, arguments.kw_defaults)]  # noqa: B905 - Python 3.8
    return {name.arg: value for name, value in pairs if value is not None}
