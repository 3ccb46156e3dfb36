"""Inference for Python: the parameters that a script reads (``argparse``, ``click``, ``sys.argv``,
``PARAM_NAME``) and the programs that it starts, by its syntax tree.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from uncaged_bundles.syntax import parse_module

from . import bash as infer_bash
from .guess import Guess, kind_of

_KINDS = {
    "int": "number",
    "float": "number",
    "bool": "boolean",
    "str": "string",
    "Path": "path",
    "INT": "number",
    "FLOAT": "number",
}
_STARTERS = frozenset(
    {
        "run",
        "Popen",
        "call",
        "check_call",
        "check_output",
        "execvp",
        "execv",
        "create_subprocess_exec",
    }
)
_SHELLS = frozenset({"system", "popen", "getoutput", "getstatusoutput", "create_subprocess_shell"})


def parameters(text: str) -> list[Guess]:
    """Return the parameters that the script seems to take."""
    tree = _parse(text)
    found: dict[str, Guess] = {}
    places = 0
    if tree is None:
        return []
    for call in _calls(tree):
        if call.name in ("add_argument", "option", "argument"):
            guess = _declared(call, places + 1)
            if guess is not None and guess.name not in found:
                places += guess.place is not None
                found[guess.name] = guess
    variables, places_read = _read_directly(tree)
    for name in variables:
        found.setdefault(name, Guess(name=name, kind=kind_of(name)))
    if not any(guess.flag or guess.place for guess in found.values()):
        for place in range(1, max(places_read, default=0) + 1):
            found[f"argument{place}"] = Guess(name=f"argument{place}", required=True, place=place)
    return list(found.values())


def commands(text: str) -> set[str]:
    """Return the programs that the script seems to start."""
    tree = _parse(text)
    found: set[str] = set()
    if tree is None:
        return found
    for call in _calls(tree):
        if not call.node.args:
            continue
        first = call.node.args[0]
        if call.name in _STARTERS and isinstance(first, ast.List) and first.elts:
            first = first.elts[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                found.add(first.value.rpartition("/")[2])
        elif (
            call.name in _SHELLS | _STARTERS
            and isinstance(first, ast.Constant)
            and isinstance(first.value, str)
        ):
            found |= infer_bash.commands(first.value) | ({"sh"} if call.name in _SHELLS else set())
    return found - {"python", "python3"}


class _Call:
    """A call. name: the last part of the function's name."""

    def __init__(self, node: ast.Call, name: str) -> None:
        self.node = node
        self.name = name

    def texts(self) -> list[str]:
        return [
            str(arg.value)
            for arg in self.node.args
            if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
        ]

    def keyword(self, name: str) -> ast.expr | None:
        return next((keyword.value for keyword in self.node.keywords if keyword.arg == name), None)

    def constant(self, name: str) -> object:
        value = self.keyword(name)
        try:
            return None if value is None else ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError):
            return None


def _parse(text: str) -> ast.Module | None:
    try:
        return parse_module(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _calls(tree: ast.Module) -> Iterator[_Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else node.func.id
                if isinstance(node.func, ast.Name)
                else ""
            )
            yield _Call(node, name)


def _declared(call: _Call, place: int) -> Guess | None:
    words = call.texts()
    flags = [word for word in words if word.startswith("-")]
    if not words or not (flags or call.name in ("add_argument", "argument")):
        return None
    flag = max(flags, key=len, default="")
    dest = call.constant("dest")
    named = (
        next((word for word in words if not word.startswith("-")), "")
        if call.name != "add_argument" or not flags
        else ""
    )
    name = dest if isinstance(dest, str) else named or flag.lstrip("-")
    switch = call.constant("action") == "store_true" or call.constant("is_flag") is True
    default, choices = call.constant("default"), call.constant("choices")
    shown = default if isinstance(default, str | int | float | bool) else None
    required = call.constant("required") is True or (
        not flags and call.constant("nargs") not in ("?", "*") and shown is None
    )
    description = call.constant("help")
    kind = "boolean" if switch else _kind(call.keyword("type"), name, shown)
    return Guess(
        name=name.replace("-", "_"),
        kind=kind,
        required=required,
        default=None if switch else shown,
        description=description if isinstance(description, str) else "",
        allowed=tuple(choices) if isinstance(choices, list | tuple) else (),
        flag=flag,
        switch=switch,
        place=None if flag else place,
    )


def _kind(node: ast.expr | None, name: str, default: object) -> str:
    match node:
        case (
            ast.Name(id=word)
            | ast.Attribute(attr=word)
            | ast.Call(func=ast.Name(id=word) | ast.Attribute(attr=word))
        ):
            return _KINDS.get(word, kind_of(name, default))
        case _:
            return kind_of(name, default)


def _read_directly(tree: ast.Module) -> tuple[list[str], set[int]]:
    """Return the names after ``PARAM_`` in texts, and the indices of ``sys.argv`` that are read."""
    names: dict[str, None] = {}
    places: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if (
                text.startswith("PARAM_") and text[6:].isidentifier()
            ):
                names[text[6:].lower()] = None
            case ast.Subscript(
                value=ast.Attribute(attr="argv"), slice=ast.Constant(value=int(place))
            ) if place > 0:
                places.add(place)
            case _:
                pass
    return list(names), places
